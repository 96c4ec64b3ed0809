"""A recogniser that revises: how often, and that it ends with the spoken text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Update
from redraft.errors import InputError, OptionError
from redraft_bench.bench.data import open_stream
from redraft_bench.eval.revise import SENTENCES, revise
from redraft_bench.eval.sets import TestSet, lag_stream
from redraft_bench.eval.stream import Segment, Stream

SOURCES = [
    " ".join(f"{letter}{number}" for number in range(4 + 3 * (n % 5))) for n, letter in enumerate("ABCDEFGH" * 6)
]
CLEAN = lag_stream(TestSet("t", tuple(SOURCES), tuple(f"ref {n}." for n in range(len(SOURCES)))), "de", 3)


def share_of_revisions(stream: Stream) -> float:
    pairs = [pair for segment in stream.segments for pair in pairwise(segment.updates)]
    return sum(not after.text.startswith(before.text) for before, after in pairs) / len(pairs)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.55])
def test_as_many_updates_as_asked_for_are_revisions(rate: float) -> None:
    assert share_of_revisions(revise(CLEAN, rate)) == pytest.approx(rate, abs=0.05)


def test_tail_shrinks_and_loses_finished_sentences() -> None:
    made = revise(CLEAN, 0.55)
    assert len(made.segments) == len(CLEAN.segments) / SENTENCES
    shorter = [len(after.text) < len(before.text) for each in made.segments for before, after in pairwise(each.updates)]
    assert sum(shorter) > len(shorter) / 5
    whole = [" ".join(SOURCES[n : n + SENTENCES]) for n in range(0, len(SOURCES), SENTENCES)]
    finals = [segment.source for segment in made.segments]
    assert all(text.endswith(final) for text, final in zip(whole, finals, strict=True))
    assert any(text != final for text, final in zip(whole, finals, strict=True))


def test_references_are_those_of_sentences_that_are_left() -> None:
    for number, segment in enumerate(revise(CLEAN, 0.55).segments):
        last = number * SENTENCES + SENTENCES
        left = next(n for n in range(1, SENTENCES + 1) if " ".join(SOURCES[last - n : last]) == segment.source)
        assert segment.references == {"de": " ".join(f"ref {n}." for n in range(last - left, last))}


def test_same_seed_same_stream() -> None:
    assert revise(CLEAN, 0.55, 5) == revise(CLEAN, 0.55, 5)
    assert len({revise(CLEAN, 0.55, seed).hash for seed in range(4)}) == 4


@given(
    st.lists(st.text("ab ", max_size=30), min_size=1, max_size=5),
    st.floats(0, 0.9),
    st.integers(0, 99),
    st.integers(1, 5),
)
def test_any_text_can_be_revised(texts: list[str], rate: float, seed: int, lag: int) -> None:
    stream = Stream("t", tuple(Segment((Update(str(n), 0, text, True),)) for n, text in enumerate(texts)))
    if not "".join(texts).split():
        with pytest.raises(InputError, match="t has no words to revise"):
            revise(stream, rate, seed, lag=lag)
        return
    made = revise(stream, rate, seed, lag=lag)
    assert all(update.text for update in made.updates)
    assert made.segments[-1].source.split()[-1] == "".join(f" {text}" for text in texts).split()[-1]


@pytest.mark.parametrize(
    ("rate", "lag", "message"),
    [
        (1.0, 3, "revisions must be a number from 0 to 0.9, not 1.0"),
        (0.5, 0, "lag must be a whole number of 1 or more, not 0"),
    ],
)
def test_what_cannot_be_is_refused(rate: float, lag: int, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        revise(CLEAN, rate, lag=lag)


def test_data_of_bench_are_revised() -> None:
    made = open_stream("talk", "de", revisions=0.55)
    assert made.name == "talk.revised-0.55" and share_of_revisions(made) > 0.4
    for noise, lag in ((True, 3), (False, 0)):
        with pytest.raises(OptionError, match="revisions cannot be combined with noise"):
            open_stream("talk", "de", revisions=0.55, noise=noise, lag=lag)
