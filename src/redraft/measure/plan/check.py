"""Compare the formula with the simulation."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.measure.plan.capacity import SEARCH_LIMIT, Demand, MethodPlan
from redraft.measure.plan.formula import ClosedQueue, EngineModel, most_carried
from redraft.measure.plan.simulate import simulate
from redraft.measure.plan.stage import TalkLoad
from redraft.measure.plan.trace import RecordedWork

#: Simulated seconds of a trial, and of its warm-up.
SECONDS, WARM_UP = 45.0, 15.0
#: Relative precision of the search for the number of sessions.
CLOSE = 1 / 32
#: Maximum relative difference at which formula and simulation agree.
TOLERANCE = 0.15
#: Maximum new tokens of a pass: unlimited, since recorded prompts are short.
_BUDGET = 1 << 20


@dataclass(frozen=True, slots=True)
class Check:
    """One engine by formula and by simulation.

    Attributes:
        formula: maximum number of sessions by the formula.
        simulation: maximum number of sessions by the simulation.
        busy: share of busy time with the formula's number of sessions, by the formula.
        simulated_busy: the same by the simulation.
        lag: seconds within which 95 % of the updates are then answered, by the formula.
        simulated_lag: the same by the simulation.
    """

    method: str
    formula: int
    simulation: int
    busy: float
    simulated_busy: float
    lag: float
    simulated_lag: float

    @property
    def difference(self) -> float:
        """Relative difference of the formula's number of sessions from the simulation's."""
        return self.formula / self.simulation - 1 if self.simulation else float("inf")


def check(plan: MethodPlan, demand: Demand, trace: RecordedWork, seed: int = 0) -> Check:
    """Simulate one engine of a feasible plan that is limited by time rather than memory or demand.

    Raises:
        MissingExtra: simpy is not installed.
    """
    script, engine = trace.script(demand.words_per_second), plan.engine
    queue = ClosedQueue(plan.work, script, engine, demand.targets)
    formula = most_carried(queue.lag, demand.deadline, SEARCH_LIMIT)

    def lag(sessions: int) -> float:
        return simulate(scene(sessions, demand, trace, engine, seed), plan.work, engine).lag

    simulation = most_carried(lag, demand.deadline, 2 * formula + 1, CLOSE)
    most = max(1, formula)
    full = simulate(scene(most, demand, trace, engine, seed), plan.work, engine)
    best = queue.estimate(most)
    return Check(plan.method, formula, simulation, best.busy, full.busy / full.seconds, best.lag, full.lag)


def scene(sessions: int, demand: Demand, trace: RecordedWork, engine: EngineModel, seed: int) -> TalkLoad:
    """Return a scene with ``sessions`` sessions of a demand on one engine, with a slot for each language."""
    script = trace.script(demand.words_per_second)
    slots = sessions * demand.targets
    return TalkLoad(script, sessions, demand.targets, SECONDS, WARM_UP, slots, engine.most, _BUDGET, seed)
