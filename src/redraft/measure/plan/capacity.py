"""Compute engines, memory and replicas from sessions and viewers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from redraft.measure.plan.costs import LinearCost, PassCost
from redraft.measure.plan.formula import ClosedQueue, EngineModel, Estimate, most_carried
from redraft.measure.plan.model import ModelSize
from redraft.measure.plan.supply import Supply
from redraft.measure.plan.trace import RecordedWork, Work

#: Maximum number of lanes, or sessions, to consider for one engine.
SEARCH_LIMIT = 1 << 14


@dataclass(frozen=True, slots=True)
class Demand:
    """The load to serve.

    Attributes:
        sessions: number of simultaneous talks.
        words_per_second: pace of the talks.
        targets: target languages per talk.
        viewers: total number of viewers, each of one language.
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
    """Requirements of the processes around the engines.

    Attributes:
        context: cache tokens reserved for a lane.
        replica_load: maximum share of a process's time that may be used, 0-1.
        message: seconds of CPU time to send one caption to one viewer.
    """

    context: int
    replica_load: float
    message: float


@dataclass(frozen=True, slots=True)
class MethodPlan:
    """Requirements of one method.

    Attributes:
        method: its name.
        work: its recorded work.
        host: seconds of Python per request.
        engine: one of the engines.
        sessions: maximum number of sessions per engine; 0 if it cannot serve one.
        best: estimate for an engine with that many sessions; None if it cannot serve one.
        limit: what limits them: ``time``, ``memory``, the ``demand``, or a sentence if it cannot serve one.
        units: total number of engines.
        machines: number of machines for them.
        session_replicas: processes that hold sessions; if engines run in these processes, at least one per machine.
        weight_bytes: memory of the weights in all units.
        cache_bytes: memory of the caches in all units.
    """

    method: str
    work: Work
    host: float
    engine: EngineModel
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
        """Whether the method can meet the deadline."""
        return self.best is not None


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """A plan: the requirements of each method, and the input of the calculation."""

    demand: Demand
    supply: Supply
    tiers: Tiers
    model: ModelSize
    trace: RecordedWork
    methods: tuple[MethodPlan, ...]

    @property
    def updates_per_second(self) -> float:
        """Updates per second of one session."""
        return self.demand.words_per_second * self.trace.updates_per_word

    @property
    def viewer_replicas(self) -> int:
        """Number of processes that send captions to viewers."""
        busy = self.demand.viewers * self.updates_per_second * self.tiers.message
        return math.ceil(busy / self.tiers.replica_load)


def make_plan(
    demand: Demand, supply: Supply, tiers: Tiers, model: ModelSize, trace: RecordedWork, methods: Sequence[str]
) -> CapacityPlan:
    """Make a plan for some methods.

    Raises:
        OptionError: a method was not recorded.
    """
    plans = tuple(_for_method(demand, supply, tiers, model, trace, method) for method in methods)
    return CapacityPlan(demand, supply, tiers, model, trace, plans)


def host_seconds(cost: PassCost, work: Work) -> tuple[float, str]:
    """Return the seconds of Python per request of a method, and the source of the number."""
    if isinstance(cost, LinearCost) and work.method in cost.host:
        return cost.host[work.method], cost.source
    return work.host, "recorded with the trace"


def _for_method(
    demand: Demand, supply: Supply, tiers: Tiers, model: ModelSize, trace: RecordedWork, method: str
) -> MethodPlan:
    work, script = trace.work(method), trace.script(demand.words_per_second)
    host, _ = host_seconds(supply.cost, work)
    engine = EngineModel(supply.cost, supply.batch_lanes, host, supply.in_process)
    nothing = MethodPlan(method, work, host, engine)
    cache = model.cell_bytes * tiers.context
    room = SEARCH_LIMIT
    if supply.memory:
        room = int((supply.memory - model.weight_bytes) // cache) if model.weight_bytes < supply.memory else 0
        if room < demand.targets:
            return replace(nothing, limit=_no_room(supply, model, cache))
    # All languages of a session are on one engine.
    most = min(room, SEARCH_LIMIT, demand.lanes) // demand.targets
    queue = ClosedQueue(work, script, engine, demand.targets)
    sessions = most_carried(queue.lag, demand.deadline, most)
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
        queue.estimate(sessions),
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


def _too_slow(supply: Supply, demand: Demand, work: Work, engine: EngineModel) -> str:
    milliseconds = 1e3 * engine.round_seconds(demand.targets, work.tokens, work.cached)
    languages = "1 language" if demand.targets == 1 else f"{demand.targets} languages"
    return (
        f"updates of one session cannot be answered within {demand.deadline:g} s even if it has a unit ({supply.unit}) "
        f"for itself: one update in twenty takes {work.passes_quantile(0.95)} passes or more, and one pass for "
        f"{languages} takes {milliseconds:.3g} ms"
    )
