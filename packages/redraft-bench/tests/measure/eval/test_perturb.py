"""Mistakes added to a stream: their rates, their corrections, and that they are reproducible."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from redraft_bench.eval.perturb import perturb
from redraft_bench.eval.sets import TestSet, lag_stream
from redraft_bench.eval.stream import Stream

SENTENCE = "One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve"
NONE = {"late": 0.0, "drop": 0.0, "split": 0.0, "casing": 0.0, "cut": 0.0}


def stream(*sources: str, lag: int = 3) -> Stream:
    return lag_stream(TestSet("t", sources, ("",) * len(sources)), "de", lag)


CLEAN = stream(*[SENTENCE] * 50)


def test_without_mistakes_nothing_changes() -> None:
    made = perturb(CLEAN, 0, NONE)
    assert made.segments == CLEAN.segments and made.hash == CLEAN.hash
    assert (made.name, made.seed) == ("t.perturbed", 0)


def test_revisions_occur_and_final_update_is_right() -> None:
    made = perturb(CLEAN, 1)
    assert made == perturb(CLEAN, 1) != perturb(CLEAN, 2)
    assert [segment.source for segment in made.segments] == [segment.source for segment in CLEAN.segments]
    assert [(update.seq, update.time) for update in made.updates] == [
        (update.seq, update.time) for update in CLEAN.updates
    ]
    revised = [
        segment
        for segment in made.segments
        if any(not after.text.startswith(before.text) for before, after in pairwise(segment.updates))
    ]
    assert 25 <= len(revised) < 50


def test_every_mistake_is_made() -> None:
    lag_6 = stream(SENTENCE, lag=6)
    first = {
        rate: {perturb(lag_6, seed, NONE | {rate: 1.0}).updates[0].text for seed in range(9)}
        for rate in ("drop", "split", "casing", "cut")
    }
    clean = "One Two Three Four Five Six"
    assert first["drop"] == {""}
    assert first["casing"] == {clean.lower()}
    assert first["cut"] == {"One Two Three Four Five S", "One Two Three Four Five Si"}
    assert all(text.replace(" ", "") == clean.replace(" ", "") != text for text in first["split"])
    assert any("OneTwo" in text for text in first["split"]) and any("O ne" in text for text in first["split"])


def test_rates_are_shares() -> None:
    made = perturb(CLEAN, 0, NONE | {"drop": 0.25, "late": 1.0})
    heard = sum(len(segment.updates[-2].text.split()) for segment in made.segments)
    assert 0.68 < heard / (50 * 9) < 0.82


@given(st.text(alphabet="aB 今。\u3099", min_size=1, max_size=30), st.integers(0, 99), st.integers(1, 4))
def test_any_text_can_be_misheard(text: str, seed: int, lag: int) -> None:
    clean = stream(text, lag=lag)
    made = perturb(clean, seed, dict.fromkeys(NONE, 0.5))
    assert len(made.updates) == len(clean.updates) and made.updates[-1] == clean.updates[-1]
