"""Rehearsing on a model: what the real scheduler asks for, and the costs that follow from it."""

from __future__ import annotations

from typing import cast

import pytest

from redraft.decoding.backend import Backend
from redraft.measure.loadtest.script import open_script
from redraft.measure.plan.rehearse import Rehearsal, fitted, rehearse
from redraft.measure.plan.stage import LoadResult, TalkLoad
from redraft.serve.scheduler import PassReport
from tests.serve.fakes import CachedModel

pytest.importorskip("simpy")


def test_talks_are_translated_and_their_passes_are_noted() -> None:
    model = CachedModel(3, slots=4)
    scene = TalkLoad(open_script("talk", "de", 2.5), 3, 1, seconds=8, warm_up=2, slots=4, most=32, budget=1000)
    found = rehearse(scene, cast(Backend, model), "ssbd", "de")
    assert len(found.passes) == found.played.rounds > 10
    assert sum(each.requests for each in found.passes) == found.played.requests
    assert 0 < sum(each.seconds for each in found.passes) < found.played.busy
    assert found.host > 0
    assert not model.cache  # all slots were given back


def test_costs_are_those_of_the_passes_and_of_what_was_spent_besides() -> None:
    passes = [PassReport(m, n, 0.001 + 0.002 * m + 0.0005 * n) for m, n in ((1, 1), (2, 9), (5, 5), (8, 40))]
    played = LoadResult(10.0, busy=sum(each.seconds for each in passes) + 0.16, rounds=4, requests=16)
    cost = fitted({"ar": [Rehearsal(played, passes)]}, "here")
    assert (cost.base, cost.request, cost.token) == pytest.approx((0.001, 0.002, 0.0005))
    assert cost.host == {"ar": pytest.approx(0.01)}
    assert cost.source == "here"
