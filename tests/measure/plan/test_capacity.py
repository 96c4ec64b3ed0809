"""From an engine to a service: units, memory, replicas, and what cannot be."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from redraft.measure.plan.assumptions import assumptions
from redraft.measure.plan.capacity import CapacityPlan, Demand, MethodPlan, Tiers, make_plan
from redraft.measure.plan.costs import LinearCost, Roofline
from redraft.measure.plan.hardware import find_hardware
from redraft.measure.plan.model import ModelSize, model_size
from redraft.measure.plan.supply import Supply, of_hardware, of_machine
from redraft.measure.plan.trace import shipped_trace
from tests.measure.plan.works import plain, trace

TIERS = Tiers(context=100, replica_load=0.5, message=1e-4)
#: 1 GB of weights, 1 MB of cache for a token.
SIZE = ModelSize("made up", 500_000_000, 1e9, 125, 8, 250, "")
ALL = ("ar", "ssbd", "redraft")
#: One update a second of five passes, of which each takes 10 ms, and Python 1 ms of it.
DEMAND = Demand(sessions=100, words_per_second=2.0, targets=1, viewers=0, deadline=1.0)
TRACE = trace(plain(5))
CORE = of_machine(4, True, LinearCost(0.0, 0.009, 0.0, {"ar": 0.001}))


def only(demand: Demand = DEMAND, supply: Supply = CORE, tiers: Tiers = TIERS) -> tuple[MethodPlan, CapacityPlan]:
    made = make_plan(demand, supply, tiers, SIZE, TRACE, ["ar"])
    return made.methods[0], made


def test_units_machines_and_replicas_by_hand() -> None:
    found, made = only()
    assert made.updates_per_second == 1
    assert 16 <= found.sessions <= 24  # 50 ms of work a second each; beyond 20, some updates are overtaken
    assert found.units == -(-100 // found.sessions)
    assert found.machines == -(-found.units // 4)
    # 100 sessions x 5 passes x 1 ms, half a core each
    assert found.session_replicas == max(found.machines, 1)
    assert found.limit == "time"


def test_memory_by_hand() -> None:
    found, _ = only()
    assert found.weight_bytes == found.machines * 1e9  # the cores of a machine share them
    assert found.cache_bytes == 100 * 100 * 1e6


def test_viewers_by_hand() -> None:
    _, made = only(replace(DEMAND, viewers=1_000_000))
    assert made.viewer_replicas == 200  # a million captions a second, 0.1 ms each, half a core


def test_memory_limits_sessions() -> None:
    gpu = Supply("gpu", LinearCost(0.001, 0.0, 0.0), False, 1.45e9, 1, 256)
    found, _ = only(supply=gpu)
    assert (found.sessions, found.limit, found.units) == (4, "memory", 25)


def test_weights_that_do_not_fit_are_said_so() -> None:
    found, _ = only(supply=Supply("gpu", LinearCost(0.001, 0.0, 0.0), False, 1.05e9, 1, 256))
    assert not found.possible
    assert found.limit == ("the weights of made up take 1.0 GB and the cache of one language 0.10 GB, but gpu has 1 GB")


def test_an_engine_that_is_too_slow_for_one_session_is_said_so() -> None:
    found, _ = only(supply=of_machine(4, True, LinearCost(0.5, 0.0, 0.0)))
    assert not found.possible
    assert "cannot be answered within 1 s even if it has a unit (core) for itself" in found.limit
    assert "takes 5 passes or more, and one pass for 1 language takes 500 ms" in found.limit


@pytest.mark.parametrize(("gpu", "method"), [("l4", "ar"), ("h200", "ssbd")])
def test_more_is_never_less(gpu: str, method: str) -> None:
    size, recorded = model_size("tower-2b", "BF16"), shipped_trace()
    supply = of_hardware(find_hardware(gpu), Roofline(find_hardware(gpu), size))

    def units(**changes: Any) -> float:
        demand = replace(Demand(1000, 2.5, 2, 0, 1.0), **changes)
        (found,) = make_plan(demand, supply, TIERS, size, recorded, [method]).methods
        return found.units if found.possible else math.inf

    series = [
        [units(sessions=sessions) for sessions in (1, 100, 10_000)],
        [units(targets=targets) for targets in (1, 4)],
        [units(deadline=deadline) for deadline in (4.0, 1.0, 0.5)],
        [units(words_per_second=rate) for rate in (1.0, 4.0)],
    ]
    for found in series:
        for before, after in itertools.pairwise(found):
            assert before <= after


def test_every_assumption_has_a_source() -> None:
    hardware = find_hardware("h200")
    size = model_size("tower-2b", "BF16")
    supply = of_hardware(hardware, Roofline(hardware, size))
    made = make_plan(replace(DEMAND, viewers=5), supply, TIERS, size, shipped_trace(), ALL)
    known = assumptions(made)
    assert all(each.what and each.value and each.source for each in known)
    assert len({each.what for each in known}) == len(known)
    assumed = [each.source for each in known if "assumed" in each.source]
    assert len(assumed) >= 7
    assert all("--" in source or "vLLM" in source for source in assumed)
