"""Many lanes on one model: in every round the requests of as many as fit are answered with one batched pass.

Verifying a draft, decoding a single token and reading a prompt are the same kind of request and share passes.  Lanes
take turns: who was in a pass goes to the end of the queue.  No more of them are under way than make passes cheap: more
would only wait for each other, each with its work half done, while those that have not begun wait all the same.
No threads, no network; everything here is called by one thread (`redraft.serve.engine`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redraft.decoding.backend import Backend
from redraft.decoding.types import Rows
from redraft.errors import RedraftError
from redraft.serve.batch import USUAL_LANES, Part, choose
from redraft.serve.lanes import Lane
from redraft.serve.load import WINDOW, Load
from redraft.serve.slots import Slot, SlotPool

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PassReport:
    """What is told of a pass: how many requests it answered, how many tokens were new, and its seconds."""

    requests: int
    tokens: int
    seconds: float


class Scheduler:
    """Runs lanes on models.

    Args:
        backends: the models by name (`redraft.decoding.types.TARGET`, `DRAFT_MODEL`).
        pool: the slots of their caches.
        load: told how long the work takes.
        budget: new tokens of one pass (`redraft.serve.batch.budget`).
        watch: told of every pass.
        clock: the time in seconds.
        most: lanes under way at a time, 1 or more; with 1 nothing is batched.
    """

    def __init__(
        self,
        backends: Mapping[str, Backend],
        pool: SlotPool,
        load: Load,
        budget: int,
        watch: Callable[[PassReport], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        most: int = USUAL_LANES,
    ) -> None:
        self.pool, self.load, self.clock = pool, load, clock
        #: How often the model failed, and how often it failed a lane that was tried alone.
        self.failed_passes = self.failed_lanes = 0
        self._backends, self._watch = backends, watch
        self._budget = budget
        self._most = most if all(backend.capabilities.batches for backend in backends.values()) else 1
        #: All lanes; those that wait longest for their turn first.
        self._lanes: dict[Lane, None] = {}

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return len(self._lanes)

    @property
    def working(self) -> bool:
        """Whether any lane has something to do."""
        return any(not lane.idle for lane in self._lanes)

    def refusal(self, wanted: int) -> str:
        """Why no more lanes can be admitted, in one sentence; empty if they can."""
        now = self.clock()
        working = [lane for lane in self._lanes if lane.worked is not None and now - lane.worked < WINDOW]
        fresh = sum(lane.worked is None and now - lane.admitted < WINDOW for lane in self._lanes)
        lane_seconds = sum(min(now - lane.admitted, WINDOW) for lane in working)
        return self.load.refusal(wanted, len(working) + fresh, lane_seconds, now)

    def add(self, lane: Lane) -> None:
        """Take a lane in."""
        self._lanes[lane] = None
        lane.admitted = self.clock()

    def remove(self, lane: Lane) -> None:
        """Forget a lane with all that it still had to do; its slot is free again."""
        lane.close()
        self._lanes.pop(lane, None)
        self.pool.give_back(lane)

    def step(self) -> bool:
        """One round: at most one pass; whether there was anything to do."""
        started = self.clock()
        ready = self._begun()
        if not ready and not self.working:
            return False
        if ready:
            self._pass(ready)
        self.load.worked(self.clock() - started, self.clock())
        return True

    def _begun(self) -> list[tuple[Lane, Slot]]:
        """The lanes that wait for rows, with their slots; those with updates waiting begin while there is room."""
        ready: list[tuple[Lane, Slot]] = []
        busy = [lane for lane in self._lanes if not lane.idle]
        room = self._most - sum(lane.running for lane in busy)
        for lane in busy:
            if not lane.running and room <= 0:
                continue
            slot = self.pool.take(lane, lambda other: not (isinstance(other, Lane) and other.running))
            if slot is None:
                continue
            if not lane.running:
                self._guarded(lane, lane.begin)
                room -= lane.running
            if lane.score is not None:
                ready.append((lane, slot))
        return ready

    def _guarded(self, lane: Lane, work: Callable[[float], None]) -> None:
        """Do a lane's work; what it raises is its own failure and nobody else's."""
        try:
            work(self.clock())
        except Exception as error:
            self._fail(lane, error)

    def _pass(self, ready: Sequence[tuple[Lane, Slot]]) -> None:
        model = next(lane.score.model for lane, _ in ready if lane.score)
        backend = self._backends[model]
        parts = choose(ready, self._budget)
        for part in parts:
            self._lanes[part.lane] = self._lanes.pop(part.lane)
        started = self.clock()
        try:
            answers = backend.score([(part.slot.numbers[model], part.score) for part in parts])
        except Exception:
            log.exception("a pass failed; its %d requests are tried alone", len(parts))
            self.failed_passes += 1
            for part in parts:
                self._alone(part, backend)
            return
        if self._watch:
            self._watch(PassReport(len(parts), sum(part.new for part in parts), self.clock() - started))
        for part, rows in zip(parts, answers, strict=True):
            self._answered(part, rows)

    def _alone(self, part: Part, backend: Backend) -> None:
        """Try a request of a failed pass again, in an empty slot; if it fails again, the fault is its own."""
        try:
            self.pool.renew(part.slot)
            (rows,) = backend.score([(part.slot.numbers[part.score.model], part.score)])
        except Exception as error:
            self._fail(part.lane, error)
            self.pool.renew(part.slot)
        else:
            self._answered(part, rows)

    def _answered(self, part: Part, rows: Rows) -> None:
        whole = part.whole
        part.slot.hold(part.score)
        part.lane.worked = self.clock()
        if whole:
            self._guarded(part.lane, lambda now: part.lane.advance(rows, now))

    def _fail(self, lane: Lane, error: Exception) -> None:
        log.error("an update could not be translated: %s", type(error).__name__)
        self.failed_lanes += 1
        reason = str(error) if isinstance(error, RedraftError) else "the model failed on it"
        lane.fail(f"the update could not be translated: {reason}", self.clock())
