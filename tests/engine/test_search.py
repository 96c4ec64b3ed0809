"""Searches for better final captions on a server: they take what time nobody else wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from redraft.captions.events import Caption, Update
from redraft.decoding.backend import Capability
from redraft.decoding.types import TARGET, Rows, Score
from redraft.engine.lanes import Lane
from redraft.engine.scheduler import CALM, SEARCHING, WINDOW
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import METHODS, CachedModel, Rig


def finals(rig: Rig, lane: Lane) -> list[tuple[str, str]]:
    return [(caption.utterance, caption.text) for caption in rig.captions(lane) if caption.final]


class Searching(CachedModel):
    """A model that scores hypotheses, which do not touch the caches of its slots."""

    capabilities = CachedModel.capabilities | {Capability.HYPOTHESES}

    def __init__(self, seed: int, **given: Any) -> None:
        super().__init__(seed, **given)
        self.searched, self.order = 0, list[int]()

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        if requests[0][1].is_aside:
            assert len(requests) == 1
            self.searched += 1
            self.order.append(requests[0][0])
            before = dict(self.cache)
            try:
                return super().score(requests)
            finally:
                self.cache = before
        assert not any(score.spare for _, score in requests) or all(score.spare for _, score in requests)
        return super().score(requests)


def searching(rig: Rig, number: int = 1) -> list[Lane]:
    """Lanes of sessions that have a final text, each until it searches."""
    lanes = [rig.lanes(method="redraft", beta=0.4, hidden_beta=0.1, doubt=0)[0] for _ in range(number)]
    for lane in lanes:
        for seq, text in enumerate(("we saw", "we saw her duck", "we saw her duck there")):
            rig.offer(lane, Update("u", seq, text, seq == 2))
            if seq < 2:
                rig.run()
    return lanes


def searched(rig: Rig) -> int:
    assert isinstance(rig.model, Searching)
    return rig.model.searched


def until_search(rig: Rig, lane: Lane) -> None:
    while not (lane.score and lane.score.spare):
        assert rig.scheduler.step()


def test_search() -> None:
    rig = Rig(Searching(5), slots=8)
    (lane,) = searching(rig)
    rig.run()
    assert searched(rig) > 2
    assert lane.state.tally.reopened and len(finals(rig, lane)) == 1


def test_searches_do_not_take_turns() -> None:
    rig = Rig(Searching(5), slots=8)
    searching(rig, 3)
    rig.run()
    assert isinstance(rig.model, Searching)
    assert sum(before != after for before, after in pairwise(rig.model.order)) == 2 < len(rig.model.order) - 3


def test_update_ends_search() -> None:
    """The first update of the next utterance does not wait for it; the caption is that of a stream without search."""
    rig = Rig(Searching(5), slots=8)
    (lane,) = searching(rig)
    until_search(rig, lane)
    rig.scheduler.step()
    rig.offer(lane, Update("v", 0, "it was there"))
    assert not finals(rig, lane)
    rig.scheduler.step()
    assert len(finals(rig, lane)) == 1 and not (lane.score and lane.score.spare)
    plain = Rig(CachedModel(5), slots=8)
    (other,) = searching(plain)
    settings = other.translation.settings
    quick = replace(settings, options={**settings.options, "search": 0})
    other.translation = replace(other.translation, settings=quick)
    plain.run()
    assert finals(rig, lane) == finals(plain, other)


def test_others_first() -> None:
    """A search waits for the passes of others, and does not delay them."""
    rig = Rig(Searching(5), slots=8)
    (lane,) = searching(rig)
    until_search(rig, lane)
    other = rig.lanes(method="ar")[0]
    rig.offer(other, Update("o", 0, "the old table", True))
    before = searched(rig)
    while not finals(rig, other):
        rig.scheduler.step()
    assert searched(rig) == before and not finals(rig, lane)
    rig.run()
    assert searched(rig) > before and len(finals(rig, lane)) == 1


def test_no_search_where_many_have_work() -> None:
    rig = Rig(Searching(5), slots=8)
    lanes = searching(rig, SEARCHING + 1)
    rig.scheduler.step()
    while any(not finals(rig, lane) for lane in lanes[:-SEARCHING]):
        assert searched(rig) == 0
        rig.scheduler.step()
    rig.run()
    assert all(len(finals(rig, lane)) == 1 for lane in lanes)


@pytest.mark.parametrize("others", [0, SEARCHING])
def test_no_search_under_load(others: int) -> None:
    """Where many are translated and the engine is busy; one talk alone is searched however busy it is."""
    rig = Rig(Searching(5), slots=8)
    for _ in range(others):
        rig.offer(rig.lanes(method="ar")[0], Update("o", 0, "the old table", True))
    rig.run()
    now = rig.clock()
    rig.scheduler.load.worked((CALM + 0.1) * WINDOW, now)
    (lane,) = searching(rig)
    rig.run()
    assert len(finals(rig, lane)) == 1
    assert bool(searched(rig)) is not bool(others)


def test_slow_search_ends() -> None:
    rig = Rig(Searching(5), slots=8)
    (lane,) = searching(rig)
    until_search(rig, lane)
    rig.scheduler.step()
    before = searched(rig)
    rig.clock.now += 60
    rig.run()
    assert searched(rig) == before and len(finals(rig, lane)) == 1


def test_failing_search() -> None:
    """Its update is answered with what there was before it."""
    rig = Rig(Searching(5, broken=lambda scores: scores[0].spare is not None), slots=8)
    (lane,) = searching(rig)
    rig.run()
    assert searched(rig) and len(finals(rig, lane)) == 1
    assert all(isinstance(event, Caption) for _, answer in rig.answers for event in answer.events)
    rig.offer(lane, Update("v", 0, "it was there", True))
    rig.run()
    assert len(finals(rig, lane)) == 2


def test_lanes_of_the_method_beam_take_turns() -> None:
    """Its requests have hypotheses, but are no searches: each goes to the end of the queue after a pass."""
    rig = Rig(Searching(3), budget=1)
    rig.service = Service({TARGET: rig.model}, ServeSettings(methods=(*METHODS[:4], "beam")))
    lanes = [rig.lanes(method="beam")[0] for _ in range(3)]
    for lane in lanes:
        rig.offer(lane, Update("u", 0, "we saw her duck there", True))
    passes = dict.fromkeys(lanes, 0)
    while rig.scheduler.step():
        for lane in lanes:
            passes[lane] = max(passes[lane], lane.passes if lane.running else 0)
        running = [passes[lane] for lane in lanes if lane.running]
        assert not running or max(running) - min(running) <= 1
    assert min(passes.values()) > 1
    assert all(finals(rig, lane) for lane in lanes)
