"""Runs many lanes on one model: each round answers as many of their requests as fit with one batched pass.

Verifying a draft, decoding a token and reading a prompt are the same kind of request and share passes.  Lanes take
turns: after a pass, its lanes go to the end of the queue.  The number of updates under way is limited: more would not
make passes cheaper, and would all wait for each other half done.  There are no threads and no network here; one thread
makes all calls (`redraft.serve.engine`).
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
    """Statistics of one pass: requests, new tokens, seconds."""

    requests: int
    tokens: int
    seconds: float


class Scheduler:
    """Runs lanes on models.

    Args:
        backends: the models by name (`redraft.decoding.types.TARGET`, `DRAFT_MODEL`).
        pool: their cache slots.
        load: records the time spent.
        budget: maximum number of new tokens per pass (`redraft.serve.batch.budget`).
        watch: called with the report of every pass.
        clock: returns the time in seconds.
        most: maximum number of updates under way, at least 1; 1 disables batching.
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
        #: Number of failed passes, and of requests that failed again when run alone.
        self.failed_passes = self.failed_lanes = 0
        self._backends, self._watch = backends, watch
        self._budget = budget
        self._most = most if all(backend.capabilities.batches for backend in backends.values()) else 1
        #: All lanes, the least recently served first.
        self._lanes: dict[Lane, None] = {}

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self._lanes)

    @property
    def working(self) -> bool:
        """Whether any lane has work."""
        return any(not lane.idle for lane in self._lanes)

    def refusal(self, wanted: int) -> str:
        """Return why no more lanes can be admitted, in one sentence; empty if they can."""
        now = self.clock()
        working = [lane for lane in self._lanes if lane.worked is not None and now - lane.worked < WINDOW]
        fresh = sum(lane.worked is None and now - lane.admitted < WINDOW for lane in self._lanes)
        lane_seconds = sum(min(now - lane.admitted, WINDOW) for lane in working)
        return self.load.refusal(wanted, len(working) + fresh, lane_seconds, now)

    def add(self, lane: Lane) -> None:
        """Add a lane."""
        self._lanes[lane] = None
        lane.admitted = self.clock()

    def remove(self, lane: Lane) -> None:
        """Remove a lane, drop its work and free its slot."""
        lane.close()
        self._lanes.pop(lane, None)
        self.pool.give_back(lane)

    def step(self) -> bool:
        """Run one round of at most one pass; return whether there was work."""
        started = self.clock()
        ready = self._begun()
        if not ready and not self.working:
            return False
        if ready:
            self._pass(ready)
        self.load.worked(self.clock() - started, self.clock())
        return True

    def _begun(self) -> list[tuple[Lane, Slot]]:
        """Start queued updates up to the limit; return the lanes that wait for rows, with their slots."""
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
        """Call ``work`` for a lane; an exception fails only this lane's update."""
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
        """Run a request of a failed pass again by itself in an empty slot; if it fails again, only its update fails."""
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
