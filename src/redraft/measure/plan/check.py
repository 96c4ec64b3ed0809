"""Holds the formula against the simulation."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.measure.plan.capacity import Demand, MethodPlan
from redraft.measure.plan.formula import Crowd, Engine, most_carried
from redraft.measure.plan.simulate import simulate
from redraft.measure.plan.stage import Scene
from redraft.measure.plan.trace import Trace

#: Simulated seconds of a trial, and until it counts.
SECONDS, WARM_UP = 45.0, 15.0
#: Numbers of sessions that differ by less than this share are not told apart.
CLOSE = 1 / 32
#: Formula and simulation agree if they differ by no more.
TOLERANCE = 0.15
#: New tokens of a pass are not limited: recorded prompts are short.
_BUDGET = 1 << 20


@dataclass(frozen=True, slots=True)
class Check:
    """One engine by formula and by simulation.

    Attributes:
        formula, simulation: the most sessions that it carries.
        busy, simulated_busy: share of its time that it works with as many sessions as the formula allows.
        lag, simulated_lag: seconds within which 95 % of the updates are answered then.
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
        """By how much the formula's number of sessions is above the simulation's, as a share of it."""
        return self.formula / self.simulation - 1 if self.simulation else float("inf")


def check(plan: MethodPlan, demand: Demand, trace: Trace, seed: int = 0) -> Check:
    """Simulate one engine of a possible plan, which must be limited by time and not by memory or demand.

    Raises:
        MissingExtra: simpy is not installed.
    """
    script, engine = trace.script(demand.words_per_second), plan.engine
    crowd = Crowd(plan.work, script, engine, demand.targets)
    formula = most_carried(crowd.lag, demand.deadline, 1 << 14)

    def lag(sessions: int) -> float:
        return simulate(scene(sessions, demand, trace, engine, seed), plan.work, engine).lag()

    simulation = most_carried(lag, demand.deadline, 2 * formula + 1, CLOSE)
    most = max(1, formula)
    full = simulate(scene(most, demand, trace, engine, seed), plan.work, engine)
    best = crowd.estimate(most)
    return Check(plan.method, formula, simulation, best.busy, full.busy / full.seconds, best.lag, full.lag())


def scene(sessions: int, demand: Demand, trace: Trace, engine: Engine, seed: int) -> Scene:
    """So many sessions of a demand on one engine, with a slot for each language."""
    script = trace.script(demand.words_per_second)
    slots = sessions * demand.targets
    return Scene(script, sessions, demand.targets, SECONDS, WARM_UP, slots, engine.most, _BUDGET, seed)
