"""From sessions and viewers to engines, memory and replicas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from redraft.measure.plan.costs import LinearCost, PassCost
from redraft.measure.plan.formula import Crowd, Engine, Estimate, most_carried
from redraft.measure.plan.model import ModelSize
from redraft.measure.plan.supply import Supply
from redraft.measure.plan.trace import Trace, Work

#: More lanes than this are not looked for on one engine.
MOST_LANES = 1 << 14


@dataclass(frozen=True, slots=True)
class Demand:
    """What is to be served.

    Attributes:
        sessions: talks at the same time, each into so many ``targets``, at ``words_per_second``.
        viewers: of all sessions together, each of one language.
        deadline: seconds within which 95 % of the updates must be answered.
    """

    sessions: int
    words_per_second: float
    targets: int
    viewers: int
    deadline: float

    @property
    def lanes(self) -> int:
        """Target languages of all sessions."""
        return self.sessions * self.targets


@dataclass(frozen=True, slots=True)
class Tiers:
    """What the processes around the engines need.

    Attributes:
        context: tokens of the cache that are reserved for a lane.
        replica_load: share of a process's time that may be spent, 0-1.
        message: seconds of a process to send one caption to one viewer.
    """

    context: int
    replica_load: float
    message: float


@dataclass(frozen=True, slots=True)
class MethodPlan:
    """What one method needs.

    Attributes:
        host: seconds of Python for each request.
        engine: one of them.
        sessions: on each engine, at most; 0 if it cannot serve one.
        best: one with so many sessions; None if it cannot serve one.
        limit: what limits them: ``time``, ``memory``, the ``demand``, or a sentence if it cannot serve one.
        units: engines in all; ``machines`` they are in.
        session_replicas: processes that hold sessions; where engines are in these processes, at least one per machine.
        weight_bytes, cache_bytes: memory of all units.
    """

    method: str
    work: Work
    host: float
    engine: Engine
    sessions: int = 0
    best: Estimate | None = None
    limit: str = ""
    units: int = 0
    machines: int = 0
    session_replicas: int = 0
    weight_bytes: float = 0.0
    cache_bytes: float = 0.0

    @property
    def possible(self) -> bool:
        """Whether it can be done."""
        return self.best is not None


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: what each method needs, and what all of it was made from."""

    demand: Demand
    supply: Supply
    tiers: Tiers
    model: ModelSize
    trace: Trace
    methods: tuple[MethodPlan, ...]

    @property
    def updates_per_second(self) -> float:
        """Of one session."""
        return self.demand.words_per_second * self.trace.updates_per_word

    @property
    def viewer_replicas(self) -> int:
        """Processes that send captions to viewers."""
        busy = self.demand.viewers * self.updates_per_second * self.tiers.message
        return math.ceil(busy / self.tiers.replica_load)


def make_plan(
    demand: Demand, supply: Supply, tiers: Tiers, model: ModelSize, trace: Trace, methods: Sequence[str]
) -> Plan:
    """Plan for some methods.

    Raises:
        OptionError: a method was not recorded.
    """
    plans = tuple(_for_method(demand, supply, tiers, model, trace, method) for method in methods)
    return Plan(demand, supply, tiers, model, trace, plans)


def host_seconds(cost: PassCost, work: Work) -> tuple[float, str]:
    """Seconds of Python for each request of a method, and where the number is from."""
    if isinstance(cost, LinearCost) and work.method in cost.host:
        return cost.host[work.method], cost.source
    return work.host, "recorded with the trace"


def _for_method(
    demand: Demand, supply: Supply, tiers: Tiers, model: ModelSize, trace: Trace, method: str
) -> MethodPlan:
    work, script = trace.work(method), trace.script(demand.words_per_second)
    host, _ = host_seconds(supply.cost, work)
    engine = Engine(supply.cost, supply.batch_lanes, host, supply.in_process)
    nothing = MethodPlan(method, work, host, engine)
    cache = model.cell_bytes * tiers.context
    room = MOST_LANES
    if supply.memory:
        room = int((supply.memory - model.weight_bytes) // cache) if model.weight_bytes < supply.memory else 0
        if room < demand.targets:
            return replace(nothing, limit=_no_room(supply, model, cache))
    # All languages of a session are on one engine.
    most = min(room, MOST_LANES, demand.lanes) // demand.targets
    crowd = Crowd(work, script, engine, demand.targets)
    sessions = most_carried(crowd.lag, demand.deadline, most)
    if not sessions:
        return replace(nothing, limit=_too_slow(supply, demand, work, engine))
    units = math.ceil(demand.sessions / sessions)
    machines = math.ceil(units / supply.per_machine)
    busy = demand.lanes * demand.words_per_second * trace.updates_per_word * work.passes * host / tiers.replica_load
    return MethodPlan(
        method,
        work,
        host,
        engine,
        sessions,
        crowd.estimate(sessions),
        _limit(sessions < most, sessions < demand.sessions),
        units,
        machines,
        max(machines, math.ceil(busy)) if supply.in_process else math.ceil(busy),
        model.weight_bytes * (units if supply.per_machine == 1 else machines),
        cache * demand.lanes,
    )


def _limit(before_most: bool, before_all: bool) -> str:
    return "time" if before_most else "memory" if before_all else "demand"


def _no_room(supply: Supply, model: ModelSize, cache: float) -> str:
    return (
        f"the weights of {model.name} take {model.weight_bytes / 1e9:.1f} GB and the cache of one language "
        f"{cache / 1e9:.2f} GB, but {supply.unit} has {supply.memory / 1e9:.0f} GB"
    )


def _too_slow(supply: Supply, demand: Demand, work: Work, engine: Engine) -> str:
    milliseconds = 1e3 * engine.round_seconds(demand.targets, work.tokens, work.cached)
    languages = "1 language" if demand.targets == 1 else f"{demand.targets} languages"
    return (
        f"updates of one session cannot be answered within {demand.deadline:g} s even if it has a unit ({supply.unit}) "
        f"for itself: one update in twenty takes {work.passes_quantile(0.95)} passes or more, and one pass for "
        f"{languages} takes {milliseconds:.3g} ms"
    )
