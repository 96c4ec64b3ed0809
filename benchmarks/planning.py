"""Compare the formula of ``redraft plan`` and its simulation with the real scheduler on a real model.

Talks are rehearsed: the scheduler translates with the model on one thread, and its clock counts that thread's time.
The result is the maximum number of sessions with a p95 lag within a second.  Formula and simulation answer the same
question, given only the cost of the passes in these rehearsals.

python -m benchmarks.planning > benchmarks/results/planning.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import click

from redraft.backends.costs import known_curve
from redraft.backends.machine import processor
from redraft.measure.plan.capacity import Demand, MethodPlan
from redraft.measure.plan.check import check
from redraft.measure.plan.formula import ClosedQueue, EngineModel, most_carried
from redraft.measure.plan.model import model_size
from redraft.measure.plan.rehearse import Rehearsal, fitted, rehearse
from redraft.measure.plan.simulate import simulate
from redraft.measure.plan.stage import LoadResult, TalkLoad
from redraft.measure.plan.supply import opened, stored
from redraft.measure.plan.trace import Work, shipped_trace
from redraft.serve.scheduler import MOST_LANES, USUAL_LANES, budget

RATE, DEADLINE = 2.5, 1.0
#: Simulated seconds of a rehearsal, and of its warm-up.
SECONDS, WARM_UP = 22.0, 6.0
#: Factor of the search until it has a carried and a not carried number, and its final precision.
STEP, CLOSE = 1.25, 1 / 10


@click.command(help=__doc__)
@click.option("--model", default="demo", show_default=True)
@click.option("--to", "language", default="de", show_default=True)
@click.option("--method", "methods", multiple=True, default=("ssbd", "ar", "redraft"), show_default=True)
def main(model: str, language: str, methods: Sequence[str]) -> None:
    """Run all methods, one after the other."""
    trace, size = shipped_trace(), model_size(model, "BF16")
    script, guess = trace.script(RATE), stored(size)
    for method in methods:
        work = trace.work(method)
        expected = most_carried(
            ClosedQueue(work, script, EngineModel(guess, USUAL_LANES, work.host)).lag, DEADLINE, MOST_LANES
        )
        with opened(size, MOST_LANES - 1) as backend:
            room = budget(known_curve(backend))
            scene = TalkLoad(script, expected, 1, SECONDS, WARM_UP, MOST_LANES - 2, USUAL_LANES, room)

            def play(sessions: int, scene: TalkLoad = scene, method: str = method) -> Rehearsal:
                found = rehearse(replace(scene, talks=sessions), backend, method, language)
                click.echo(f"{method}, {sessions} sessions: {found.played.lag:.3f} s", err=True)
                return found

            carried, trials = _search(play, expected)
        cost = fitted({method: list(trials.values())}, "")
        engine = EngineModel(cost, USUAL_LANES, cost.host[method])
        found = check(MethodPlan(method, work, engine.host, engine), Demand(1, RATE, 1, 0, DEADLINE), trace)
        row = {
            "model": model,
            "method": method,
            "formula": found.formula,
            "simulation": found.simulation,
            "measured": carried,
            "costs_ms": [round(1e3 * each, 4) for each in (cost.base, cost.request, cost.token, engine.host)],
            "trials": [
                _trial(replace(scene, talks=n), each.played, work, engine) for n, each in sorted(trials.items())
            ],
            "processor": processor().label,
        }
        json.dump(row, sys.stdout)
        print(flush=True)


def _trial(scene: TalkLoad, played: LoadResult, work: Work, engine: EngineModel) -> dict[str, float]:
    """Run a rehearsal, and compare it with the formula and the simulation of the same scene."""
    formula, simulated = ClosedQueue(work, scene.script, engine).estimate(scene.talks), simulate(scene, work, engine)
    figures = {
        "sessions": scene.talks,
        "lag": played.lag,
        "formula_lag": formula.lag,
        "simulated_lag": simulated.lag,
        "busy": played.busy / played.seconds,
        "formula_busy": formula.busy,
        "simulated_busy": simulated.busy / simulated.seconds,
    }
    return {name: round(value, 3) for name, value in figures.items()}


def _search(play: Callable[[int], Rehearsal], expected: int) -> tuple[int, dict[int, Rehearsal]]:
    """Return the approximate maximum number of sessions carried, and all trials by number of sessions."""
    trials: dict[int, Rehearsal] = {}

    def carried(sessions: int) -> bool:
        trials[sessions] = play(sessions)
        return trials[sessions].played.lag <= DEADLINE

    low = high = max(1, expected)
    if carried(low):
        while carried(high := round(STEP * high) + 1):
            low = high
    else:
        while low and not carried(low := int(low / STEP)):
            high = low
    while high - low > max(1, CLOSE * low):
        middle = (low + high) // 2
        low, high = (middle, high) if carried(middle) else (low, middle)
    return low, trials


if __name__ == "__main__":
    main()
