"""Runs many lanes on one model: each round answers as many of their requests as fit with one batched pass.

Verifying a draft, decoding a token and reading a prompt are the same kind of request and share passes.  Lanes take
turns: after a pass, its lanes go to the end of the queue.  The number of updates under way is limited: more would not
make passes cheaper, and would all wait for each other half done.  Searches for better final texts
(`redraft.decoding.search`) take the passes that nobody else wants, and end at once where many have work.  There are no
threads and no network here; one thread makes all calls (`redraft.engine`).

`choose` picks the requests of a pass within a budget of new tokens.  `Load` measures the engine's load, to refuse new
sessions before the captions of the running ones lag.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from operator import attrgetter

from redraft import deadlines
from redraft.backends.costs import LearnedCosts, busy_share, pace
from redraft.captions.events import Update
from redraft.decoding.backend import Backend, Capability, CostCurve
from redraft.decoding.drive import one_search
from redraft.decoding.types import EMPTY_DRAFT, TARGET, Rows, Score
from redraft.engine.lanes import Lane, Once, Work
from redraft.engine.slots import Slot, SlotPool
from redraft.errors import RedraftError

log = logging.getLogger(__name__)

#: Longest pass in seconds; a new request waits at most this long for the next one.
LONGEST_PASS = 0.1
LEAST_BUDGET, MOST_BUDGET = 16, 2048
#: Budget as long as the cost of a pass is unknown, and for backends whose passes cost the same at any size.
FIRST_BUDGET, UNLIMITED = 256, 1 << 40
#: Lanes under way at a time (one per slot), by default, which keeps passes of a small model on the CPU cheap.
DEFAULT_LANES = 32
#: Most lanes with work while any of them searches.
SEARCHING = 4
#: Share of busy time, 0-1, from which nobody searches if more than that many have worked lately.
CALM = 0.5
#: Seconds over which the load is measured.
WINDOW = 10.0
_BUCKET = 0.5


class NoCapacity(RedraftError):
    """More lanes would be too many, or too much work."""


@dataclass(frozen=True, slots=True)
class Part:
    """The share of a lane, or of a one-shot request, in a pass.

    Attributes:
        score: what it asks for, or an earlier piece of its prompt, whose rows are discarded.
        new: tokens of ``score`` that are not in the cache.
    """

    lane: Work
    slot: Slot
    score: Score
    new: int


def budget(curve: CostCurve | None, seconds: float = LONGEST_PASS) -> int:
    """Return how many new tokens a pass processes within ``seconds``, from `LEAST_BUDGET` to `MOST_BUDGET`."""
    if curve is None:
        return FIRST_BUDGET
    return LEAST_BUDGET + bisect_right(range(LEAST_BUDGET + 1, MOST_BUDGET + 1), seconds, key=curve)


def choose(ready: Iterable[tuple[Work, Slot]], budget: int) -> list[Part]:
    """Choose the requests of the next pass, in the order of ``ready``.

    All are for the same model, and together they stay within the budget.  A prompt that does not fit is split: this
    pass takes the piece that fits, the cache keeps it, and later passes take the rest.  A request that cannot be split
    and is larger than the budget gets a pass of its own.

    Args:
        ready: lanes that wait for rows, the longest waiting first.
    """
    parts: list[Part] = []
    room = budget
    for lane, slot in ready:
        score = lane.score
        if score is None or (parts and score.model != parts[0].score.model):
            continue
        part = _fitting(lane, slot, score, room, first=not parts)
        if part is not None:
            parts.append(part)
            room -= part.new
        if room <= 0:
            break
    return parts


def _fitting(lane: Work, slot: Slot, score: Score, room: int, *, first: bool) -> Part | None:
    reused = slot.reused(score)
    new = len(score.prefix) + len(score.draft) - reused
    if new <= room:
        return Part(lane, slot, score, new)
    # The rows at the end of the prompt and the draft must be in one pass; encoder input cannot be split either.
    end = min(reused + room, len(score.prefix) - score.prompt_rows)
    if end > reused and not score.encoder:
        piece = replace(score, prefix=score.prefix[:end], draft=EMPTY_DRAFT, prompt_rows=1)
        return Part(lane, slot, piece, end - reused)
    return Part(lane, slot, score, new) if first else None


class Load:
    """Measures which share of its time the engine works.

    Args:
        most: maximum share of busy time, 0-1, up to which new lanes are admitted.
        curve: returns the cost of a pass, from which that of a lane is estimated before it has worked; None as long as
            it is unknown.
    """

    def __init__(self, most: float, curve: Callable[[], CostCurve | None]) -> None:
        self._most, self._curve = most, curve
        #: Start time of each bucket, and seconds of work in it.
        self._buckets: deque[tuple[float, float]] = deque()

    def worked(self, seconds: float, now: float) -> None:
        """Record ``seconds`` of work that ended at ``now``."""
        if self._buckets and now - self._buckets[-1][0] < _BUCKET:
            start, before = self._buckets.pop()
            self._buckets.append((start, before + seconds))
        else:
            self._buckets.append((now, seconds))
        while now - self._buckets[0][0] > WINDOW:
            self._buckets.popleft()

    def busy(self, now: float) -> float:
        """Return the share of the last `WINDOW` seconds spent working, 0-1.  Thread-safe."""
        worked = sum(seconds for start, seconds in list(self._buckets) if now - start <= WINDOW)
        return min(1.0, worked / WINDOW)

    def check(self, wanted: int, speaking: int, lane_seconds: float, now: float) -> None:
        """Check that more lanes can be admitted.

        Without others, any number can: updates are passed over, so that the captions of a model that is too slow are
        fewer and not ever later, and that is logged.

        Args:
            speaking: number of lanes that worked in the last `WINDOW` seconds or were just admitted.
            lane_seconds: total time in seconds that the lanes that worked have existed, each counted up to `WINDOW`.

        Raises:
            NoCapacity: the load would be too high.
        """
        # Average share of time per lane.  The estimate counts as one lane of a full window, since the first moments of
        # a lane say little.  With batching another lane costs less than the average, never more.
        curve = self._curve()
        estimate = busy_share(curve) if curve else 0.0
        share = (self.busy(now) + estimate) * WINDOW / (lane_seconds + WINDOW)
        expected = max(self.busy(now), share * speaking) + share * wanted
        if not speaking:
            if curve and busy_share(curve, wanted) > 1:
                log.warning("captions will not keep up with speech: %s", pace(curve, wanted))
        elif expected > self._most:
            more = "1 more language" if wanted == 1 else f"{wanted} more languages"
            raise NoCapacity(
                f"the server is at its capacity: {more} would keep it busy for "
                f"{expected:.0%} of the time, and {self._most:.0%} are allowed; try again later",
            )


class Scheduler:
    """Runs lanes on models.

    Args:
        backends: the models by name (`redraft.decoding.types.TARGET`, `DRAFT_MODEL`).
        slots: the slots of every model that it may use (`redraft.decoding.drive.open_slots`).
        busy: maximum share of busy time, 0-1, up to which new lanes are admitted.
        budget: maximum number of new tokens per pass; None chooses it by their cost (`budget`).
        watch: called after each pass with the number of its requests, of their new tokens, and its seconds.
        most: maximum number of updates under way, at least 1; 1 disables batching.
    """

    def __init__(
        self,
        backends: Mapping[str, Backend],
        slots: Sequence[dict[str, int]],
        busy: float = 1.0,
        budget: int | None = None,
        watch: Callable[[int, int, float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        most: int = DEFAULT_LANES,
    ) -> None:
        self.pool, self.clock = SlotPool(backends, slots), clock
        #: What passes of the target cost.
        self.costs = LearnedCosts()
        self.load = Load(busy, self.costs.curve)
        #: Number of failed passes, and of requests that failed again when run alone.
        self.failed_passes = self.failed_lanes = 0
        #: By when the model must answer, in seconds of the clock; infinite while nothing is asked of it.
        self.due = math.inf
        self._backends, self._watch = backends, watch
        self._given = budget
        #: The curve for which the budget was computed last, and the budget.
        self._budget: tuple[CostCurve | None, int] = None, FIRST_BUDGET
        self._most = most if all(Capability.BATCHES in backend.capabilities for backend in backends.values()) else 1
        self._lanes: set[Lane] = set()
        #: The lanes that have work.
        self._busy: set[Lane] = set()
        #: One-shot requests that have no answer yet, the first to come first.
        self._requests: dict[Once, None] = {}
        self._turns = count()

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self._lanes)

    @property
    def requests(self) -> int:
        """Number of one-shot requests that have no answer yet."""
        return len(self._requests)

    @property
    def working(self) -> bool:
        """Whether any lane has work, or a request waits.  Thread-safe."""
        return bool(self._busy or self._requests)

    def expect(self, seconds: float = 0.0) -> None:
        """Set `due` for work that usually takes so many seconds."""
        self.due = self.clock() + max(deadlines.PASS, deadlines.PASS_FACTOR * seconds)

    def check_load(self, wanted: int) -> None:
        """Check that ``wanted`` more lanes can be admitted.  Raises `NoCapacity` if the load is too high."""
        now = self.clock()
        working = self._speaking(now)
        fresh = sum(lane.worked is None and now - lane.admitted < WINDOW for lane in self._lanes)
        lane_seconds = sum(min(now - lane.admitted, WINDOW) for lane in working)
        self.load.check(wanted, len(working) + fresh, lane_seconds, now)

    def _speaking(self, now: float) -> list[Lane]:
        """Return the lanes that worked in the last `WINDOW` seconds.  Thread-safe."""
        return [lane for lane in list(self._lanes) if lane.worked is not None and now - lane.worked < WINDOW]

    def able(self) -> str:
        """Return what the model can do here if that is not enough for the languages that are spoken; else nothing.

        Thread-safe.
        """
        curve, speaking = self.costs.curve(), len(self._speaking(self.clock()))
        return pace(curve, speaking) if curve and speaking and busy_share(curve, speaking) > 1 else ""

    def add(self, lane: Lane) -> None:
        """Add a lane."""
        self._lanes.add(lane)
        lane.admitted, lane.turn = self.clock(), next(self._turns)

    def offer(self, lane: Lane, update: Update, since: float, *, rest: bool = False) -> None:
        """Give a lane an update (`Lane.offer`); if the lane has been removed, drop it."""
        if lane in self._lanes:
            self._busy.add(lane)
            # While lanes wait for each other, an update that is abandoned has cost the others their time.
            crowded = len(self._busy) > min(self._most, self.pool.size)
            lane.offer(update, since, rest=rest, abandon=not crowded)
            if not lane.running:
                self.pool.settle(lane)

    def remove(self, lane: Lane) -> None:
        """Remove a lane, drop its work and free its slot."""
        lane.close()
        self._lanes.discard(lane)
        self._busy.discard(lane)
        self.pool.give_back(lane)

    def ask(self, request: Once) -> None:
        """Add a one-shot request, which waits for its turn."""
        request.prepare()
        if not request.idle:
            request.turn = next(self._turns)
            self._requests[request] = None

    def drop(self, request: Once) -> None:
        """Remove a one-shot request whose client has gone."""
        request.close()
        self.pool.settle(request)
        self._left(request)

    def step(self) -> bool:
        """Run one round of at most one pass; return whether there was work."""
        started = self.clock()
        ready = self._begun()
        if not ready and not self.working:
            return False
        parts = self._chosen(ready) if ready else []
        if parts:
            self._pass(parts)
        # One-shot requests keep no session out, nor does a search, which gives way.
        if any(isinstance(part.lane, Lane) and not part.score.spare for part in parts):
            self.load.worked(self.clock() - started, self.clock())
        return True

    def _begun(self) -> list[tuple[Work, Slot]]:
        """Start what waits, up to the limits; return the lanes and requests that wait for rows, with their slots."""
        ready: list[tuple[Work, Slot]] = []
        busy: list[Work] = sorted([*self._busy, *self._requests], key=attrgetter("turn"))
        room = self._most - sum(each.running for each in busy)
        requests = self._most_requests() - sum(each.running for each in self._requests)
        for each in busy:
            request = each in self._requests
            if not each.running and (room <= 0 or (request and requests <= 0)):
                continue
            slot = self.pool.take(each)
            if slot is None:
                continue
            if not each.running:
                self._guarded(each, partial(each.begin, slot.draft(each.wish)))
                room -= each.running
                requests -= request and each.running
            self._end_searches(each)
            if each.score is not None:
                ready.append((each, slot))
        return ready

    def _end_searches(self, work: Work) -> None:
        """End the search of a lane or request if there is no time for it."""
        curve = self._backends[TARGET].curve()
        while work.score and work.score.spare:
            now = self.clock()
            crowded = len(self._busy) + len(self._requests) > SEARCHING
            strained = self.load.busy(now) > CALM and len(self._speaking(now)) > SEARCHING
            if not (crowded or strained or work.overdue(now, curve)):
                return
            self._guarded(work, partial(work.advance, None, declined=True))

    def _chosen(self, ready: Sequence[tuple[Work, Slot]]) -> list[Part]:
        """Return what the next pass answers."""
        if needed := [each for each in ready if each[0].score and not each[0].score.spare]:
            return choose(needed, self._room())
        slots = dict(ready)
        searches = one_search({work: work.score for work in slots if work.score})
        (work, *_) = searches
        if work.score and work.score.is_aside:
            return [Part(work, slots[work], work.score, work.score.spare.tokens if work.score.spare else 1)]
        return choose([(each, slots[each]) for each in searches], self._room())

    def _most_requests(self) -> int:
        """Return how many one-shot requests are answered at a time: a single one while somebody speaks.

        Others may take half of the slots, so that a session that begins has one at once.
        """
        if self._speaking(self.clock()):
            return 1
        return max(1, self.pool.size // 2)

    def _guarded(self, lane: Work, step: Callable[[float], None]) -> None:
        """Let a lane take a step at this time; an exception fails only this lane's update."""
        try:
            step(self.clock())
        except Exception as error:
            self._fail(lane, error)
        if not lane.running:
            self.pool.settle(lane)
        if lane.idle:
            self._left(lane)

    def _left(self, lane: Work) -> None:
        """Remove what has no work left from what is busy."""
        if isinstance(lane, Lane):
            self._busy.discard(lane)
        elif isinstance(lane, Once):
            self._requests.pop(lane, None)
            self.pool.spare(lane, lane.answer)

    def _pass(self, parts: Sequence[Part]) -> None:
        model = parts[0].score.model
        backend = self._backends[model]
        for part in parts:
            if not part.score.is_aside:  # a backend keeps the cache of one search until it ends
                part.lane.turn = next(self._turns)
        new, started = sum(part.new for part in parts), self.clock()
        try:
            answers = self._scored(backend, parts)
        except Exception as error:
            self._failed(parts, backend, error)
            return
        seconds = self.clock() - started
        if model == TARGET and not parts[0].score.spare:  # of a search, it is not known how much was in its cache
            self.costs.took(new, seconds)
        if self._watch:
            self._watch(len(parts), new, seconds)
        for part, rows in zip(parts, answers, strict=True):
            self._answered(part, rows)

    def _scored(self, backend: Backend, parts: Sequence[Part]) -> Sequence[Rows]:
        """Run a pass, with a deadline from its cost; the client of a remote server has deadlines of its own."""
        curve = self.costs.curve() if self._given != UNLIMITED or backend.curve() else None
        cost = deadlines.FIRST_PASS / deadlines.PASS_FACTOR if curve is None else curve(sum(part.new for part in parts))
        self.expect(cost)
        return backend.score([(part.slot.numbers[part.score.model], part.score) for part in parts])

    def _failed(self, parts: Sequence[Part], backend: Backend, error: Exception) -> None:
        """Try the requests of a failed pass alone; a search ends, since its update has an output already."""
        if not parts[0].score.spare:
            log.exception("a pass failed; its %d requests are tried alone", len(parts))
            self.failed_passes += 1
            for part in parts:
                self._alone(part, backend)
            return
        log.info("a search for a better final caption failed: %s", error)
        for part in parts:
            if not part.score.is_aside:
                self.pool.renew(part.slot)
            self._guarded(part.lane, partial(part.lane.advance, None, declined=True))

    def _room(self) -> int:
        if self._given is not None:
            return self._given
        curve = self.costs.curve()
        if curve is not self._budget[0]:
            self._budget = curve, budget(curve)
        return self._budget[1]

    def _alone(self, part: Part, backend: Backend) -> None:
        """Run a request of a failed pass again by itself in an empty slot; if it fails again, only its update fails."""
        try:
            self.pool.renew(part.slot)
            (rows,) = self._scored(backend, [part])
        except Exception as error:
            self._fail(part.lane, error)
            self.pool.renew(part.slot)
        else:
            self._answered(part, rows)

    def _answered(self, part: Part, rows: Rows) -> None:
        if not part.score.is_aside:
            part.slot.hold(part.score)
        part.lane.worked = self.clock()
        if part.score is part.lane.score:  # otherwise more of the prompt is left to read
            self._guarded(part.lane, partial(part.lane.advance, rows))

    def _fail(self, lane: Work, error: Exception) -> None:
        log.error("an update could not be translated: %s", type(error).__name__)
        self.failed_lanes += 1
        reason = str(error) if isinstance(error, RedraftError) else "the model failed on it"
        lane.fail(reason, self.clock())
        if lane.idle:
            self._left(lane)
