"""The simulation: repeatable, right in simple cases, and in agreement with the formula."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redraft.measure.plan.capacity import Demand, MethodPlan
from redraft.measure.plan.check import TOLERANCE, check
from redraft.measure.plan.costs import LinearCost
from redraft.measure.plan.formula import EngineModel
from redraft.measure.plan.simulate import simulate
from redraft.measure.plan.stage import TalkLoad
from redraft.measure.plan.trace import shipped_trace
from tests.measure.plan.works import plain, trace

pytest.importorskip("simpy")

#: Of `benchmarks.planning`.
MEASURED = Path(__file__).parents[3] / "benchmarks" / "results" / "planning.jsonl"
RESULTS = [json.loads(line) for line in MEASURED.read_text(encoding="utf-8").splitlines()]
WORK = plain(passes=5)
#: As measured of the demo model: milliseconds a pass, a language and a token, and of Python.
DEMO = EngineModel(LinearCost(0.00008, 0.0017, 0.00076), 32, 0.0001)


#: Passes that share much, as where reading the weights is most of the work.
SHARING = EngineModel(LinearCost(0.015, 0.001, 0.0005), 32, 0.0001)


def scene(**changes: object) -> TalkLoad:
    script = trace(WORK).script(1.0)
    made = TalkLoad(script, 1, 1, seconds=44, warm_up=4, slots=8, most=32, budget=1000)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_one_session_is_busy_for_its_passes() -> None:
    played = simulate(scene(), WORK, EngineModel(LinearCost(0.1, 0.0, 0.0), 32))
    assert played.busy / played.seconds == pytest.approx(0.25, rel=0.06)
    assert played.requests == played.rounds
    assert played.lag == pytest.approx(0.5, abs=0.01)


def test_languages_of_a_session_share_passes() -> None:
    played = simulate(scene(targets=3), WORK, EngineModel(LinearCost(0.0, 0.1, 0.0), 32))
    assert played.requests == 3 * played.rounds
    assert played.lag == pytest.approx(1.5, abs=0.01)


def test_a_lane_without_a_slot_reads_its_prompt_again() -> None:
    engine = EngineModel(LinearCost(0.0, 0.0, 0.001), 32)
    with_slots = simulate(scene(talks=4, slots=4), WORK, engine)
    without = simulate(scene(talks=4, slots=1), WORK, engine)
    assert without.requests == pytest.approx(with_slots.requests, rel=0.1)
    assert without.busy > 1.5 * with_slots.busy


def test_updates_are_overtaken_where_the_engine_is_too_slow() -> None:
    played = simulate(scene(talks=3), WORK, EngineModel(LinearCost(0.0, 0.2, 0.0), 32))
    assert played.busy == pytest.approx(played.seconds, rel=0.05)
    assert len(played.lags) < 0.8 * 3 * played.seconds / 2


def test_the_seed_decides() -> None:
    recorded = shipped_trace()
    work = recorded.work("ssbd")
    made = TalkLoad(recorded.script(2.5), 10, 1, seconds=12, warm_up=4, slots=10, most=32, budget=1000)
    first, again = (simulate(made, work, DEMO) for _ in range(2))
    assert (first.lags, first.busy) == (again.lags, again.busy)
    assert simulate(replace(made, seed=1), work, DEMO).lags != first.lags


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "targets", "engine"),
    [
        ("ar", 1, DEMO),
        ("ssbd", 1, DEMO),
        ("redraft", 1, DEMO),
        ("ssbd", 3, DEMO),
        ("ar", 1, SHARING),
        ("ssbd", 1, SHARING),
    ],
)
def test_formula_and_simulation_agree(method: str, targets: int, engine: EngineModel) -> None:
    recorded = shipped_trace()
    plan = MethodPlan(method, recorded.work(method), engine.host, engine)
    found = check(plan, Demand(1, 2.5, targets, 0, 1.0), recorded)
    # With few sessions, one more or less is more than the tolerance.
    assert abs(found.formula - found.simulation) <= max(1, TOLERANCE * found.simulation)
    assert found.busy == pytest.approx(found.simulated_busy, rel=TOLERANCE)


@pytest.mark.parametrize("row", RESULTS, ids=lambda row: f"{row['method']}-{row.get('load_test', False)}")
def test_formula_and_simulation_agree_with_what_was_measured(row: dict[str, Any]) -> None:
    for name in ("formula", "simulation"):
        assert abs(row[name] / row["measured"] - 1) <= TOLERANCE
    for trial in row["trials"] if not row.get("load_test") else ():
        assert trial["formula_busy"] == pytest.approx(trial["busy"], rel=TOLERANCE)
        assert trial["simulated_busy"] == pytest.approx(trial["busy"], rel=TOLERANCE)
