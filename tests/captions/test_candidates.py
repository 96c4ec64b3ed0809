"""Final captions are chosen among candidates: which ones there are, which one wins, and what becomes of a search."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from redraft.captions.answer import OutputReader
from redraft.captions.events import Caption
from redraft.captions.finals import Flaw, copied, flaw_of, is_better
from redraft.captions.state import Decoded, State
from redraft.decoding.backend import CostCurve
from redraft.decoding.drive import Searching
from redraft.decoding.ends import NO_BREAKS
from redraft.decoding.methods import get_method
from redraft.decoding.search import OPTIONS
from redraft.decoding.types import ROOT, Likelihood, Output, Rows, Score, Spare
from redraft.errors import ModelError
from tests.captions.streams import BY_DEFAULT, Stream
from tests.fakes import END, RandomModel

WORDS = "we saw her duck under the old table and it was there again".split()
#: Texts that grow to this one, which is final.
SIZES = (2, 4, 6, 8)


def finals(model: RandomModel, seed: int, options: dict[str, Any], **given: Any) -> tuple[list[str], list[State]]:
    """The final captions of eight utterances of random words, and the states after them."""
    draw = random.Random(seed)
    stream = Stream(model, display=BY_DEFAULT, **{"method": "redraft", "options": options, **given})
    texts, states = [], []
    for number in range(8):
        words = [draw.choice(WORDS) for _ in range(SIZES[-1])]
        for size in SIZES:
            events = stream.send(" ".join(words[:size]), str(number), final=size == SIZES[-1])
        texts += [event.text for event in events if isinstance(event, Caption)]
        states += stream.states
    return texts, states


@pytest.mark.parametrize("seed", range(4))
def test_no_time_no_search(seed: int) -> None:
    """Without time, the ids are those of the method alone, but for translations that do not grow with their text."""
    method = get_method("redraft")
    own = replace(method, options=tuple(each for each in method.options if each not in OPTIONS))
    found, states = finals(RandomModel(seed), seed, {"search": 0}, hypotheses=4)
    expected, _ = finals(RandomModel(seed), seed, {}, method=own)
    still = sum(state.tally.reopened > before.tally.reopened for before, state in pairwise(states))
    assert sum(a != b for a, b in zip(found, expected, strict=True)) <= still


@pytest.mark.parametrize("seed", range(4))
def test_no_bias(seed: int) -> None:
    """Without a bias, a beam and a margin, the ids are those of greedy decoding."""
    options = {"beta": 0, "hidden_beta": 0, "hypotheses": 1, "margin": 0}
    assert (
        finals(RandomModel(seed), seed, options, hypotheses=4)[0] == finals(RandomModel(seed), seed, {}, method="ar")[0]
    )


def mean(model: RandomModel, state: State) -> float:
    """The log-probability per token of an output that is finished, a pass for each token."""
    ids, total = state.decoded.prompt.ids, 0.0
    for token in (*state.output, END):
        (rows,) = model.score([(0, Score(ids))])
        total, ids = total + rows.logprob(ROOT, token), (*ids, token)
    return total / (len(state.output) + 1)


@pytest.mark.parametrize("hypotheses", [0, 4])
def test_more_probable(hypotheses: int) -> None:
    """What is chosen is more probable than the method's own output, by the margin if there is no beam."""
    changed = 0
    for seed in range(12):
        model = RandomModel(seed, end_bias=-1.0)
        _, own = finals(model, seed, {"search": 0})
        _, found = finals(model, seed, {"doubt": 0}, hypotheses=hypotheses)
        for before, after in zip(own, found, strict=True):
            assert after.decoded.prompt == before.decoded.prompt
            if after.output == before.output or not (before.decoded.output.finished and after.decoded.output.finished):
                continue
            changed += 1
            gain = mean(model, after) - mean(model, before)
            assert gain > (0.0 if hypotheses else 0.2)
            likelihood = after.decoded.output.likelihood
            assert likelihood and likelihood.mean == pytest.approx(mean(model, after))
    assert changed > (20 if hypotheses else 3)


class Unreliable(RandomModel):
    """Fails in some of the passes of searches; its passes have a cost."""

    def __init__(self, seed: int, chance: float, cost: CostCurve | None = None) -> None:
        super().__init__(seed, end_bias=-1.0)
        self.draw, self.chance, self.cost = random.Random(seed), chance, cost
        self.failed = self.searched = 0

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        if requests[0][1].spare:
            self.searched += 1
            if self.draw.random() < self.chance:
                self.failed += 1
                raise ModelError("the pass failed")
        return super().score(requests)

    def curve(self) -> CostCurve | None:
        return self.cost


@pytest.mark.parametrize("chance", [0.05, 0.3, 1.0])
def test_failing_search(chance: float) -> None:
    """A search that fails leaves the best caption so far, once, and no failure."""
    failed = 0
    for seed in range(6):
        model = Unreliable(seed, chance)
        texts, _ = finals(model, seed, {"doubt": 0}, hypotheses=4)
        assert len(texts) == 8
        failed += model.failed
        if chance == 1.0:
            assert texts == finals(RandomModel(seed, end_bias=-1.0), seed, {"search": 0})[0]
    assert failed


def searched(options: dict[str, Any], seconds: float = 0.001) -> int:
    """How many requests of searches there are if a pass takes so many seconds."""
    model = Unreliable(2, 0.0, CostCurve((1, 64), (seconds, seconds)))
    finals(model, 2, options, hypotheses=4)
    return model.searched


def test_time() -> None:
    """A search runs if the passes that it needs fit into its time."""
    counts = [searched({"doubt": 100}, seconds) for seconds in (0.001, 0.02, 0.3)]
    assert counts[0] > counts[1] > counts[2] == 0
    assert searched({"doubt": 100, "search": 60_000}, 0.2) == counts[0]


def test_doubt() -> None:
    """Where the bias has given up much, a search may take ten times as long."""
    counts = [searched({"doubt": doubt}, 0.02) for doubt in (0, 0.5, 100)]
    assert counts[0] >= counts[1] > counts[2] > 0
    assert searched({"doubt": 0}, 3.0) == 0


def test_when_a_search_is_over() -> None:
    def is_over(spare: Spare, curve: CostCurve | None, spent: float) -> bool:
        searching = Searching()
        return [searching.is_over(spare, curve, now) for now in (5.0, 5.0 + spent)][-1]

    spare = Spare(1.0, 10, 4)
    assert not is_over(spare, None, 0.0) and not is_over(spare, None, 2.0) and is_over(spare, None, 2.1)
    curve = CostCurve((1, 4), (0.05, 0.1))
    assert not is_over(spare, curve, 0.0)
    assert is_over(Spare(1.0, 11, 4), curve, 0.0) and not is_over(Spare(2.0, 11, 4), curve, 0.0)


#: Each id is a word.
VOCABULARY = ("", " der", " Hund", " the", " dog", " barks", ".", " bellt")


def candidate(text: str, source: str = "the dog barks.", *, finished: bool = True, likely: float = -1.0) -> Decoded:
    ids = tuple(VOCABULARY.index("." if word == "." else f" {word}") for word in text.replace(".", " .").split())
    reader = OutputReader(source, NO_BREAKS, lambda token: VOCABULARY[token].encode())
    return Decoded(reader=reader, output=Output(ids, finished, likelihood=Likelihood(likely)))


OWN = candidate("der Hund.")


@pytest.mark.parametrize(
    ("decoded", "before", "flaw"),
    [
        (OWN, Decoded(), Flaw.NONE),
        (candidate(""), Decoded(), Flaw.EMPTY),
        (candidate("."), Decoded(), Flaw.EMPTY),
        (candidate("der Hund", finished=False), Decoded(), Flaw.CUT),
        (candidate("the dog barks."), Decoded(), Flaw.COPY),
        (candidate("der dog."), Decoded(), Flaw.COPY),
        (candidate("der Hund"), Decoded(), Flaw.SHORT),
        (OWN, candidate("der Hund", "the dog"), Flaw.STILL),
        (OWN, candidate("der Hund", "the dog barks"), Flaw.NONE),
    ],
)
def test_flaws(decoded: Decoded, before: Decoded, flaw: Flaw) -> None:
    assert flaw_of(decoded, before, OWN, ".") is flaw


def test_order() -> None:
    likely, unlikely = candidate("der Hund bellt.", likely=-0.5), candidate("der Hund.", likely=-0.6)
    assert is_better(likely, unlikely, (Flaw.NONE, Flaw.NONE), 0.0)
    assert not is_better(likely, unlikely, (Flaw.NONE, Flaw.NONE), 0.2)
    assert not is_better(unlikely, likely, (Flaw.NONE, Flaw.NONE), 0.0)
    assert is_better(unlikely, likely, (Flaw.NONE, Flaw.STILL), 9.0)
    assert not is_better(likely, unlikely, (Flaw.COPY, Flaw.SHORT), 0.0)
    unknown = replace(likely, output=replace(likely.output, likelihood=None))
    assert not is_better(unknown, unlikely, (Flaw.NONE, Flaw.NONE), 0.0)


def test_copied() -> None:
    assert copied(candidate("der dog.")) == 0.5
    assert copied(candidate("der Hund.")) == 0.0
