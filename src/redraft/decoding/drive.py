"""Drivers: run the generators of `redraft.decoding.decode` on backends, one or many in lock-step.

Each round collects the next request of every generator and answers all requests for a model with one batched pass.
Requests of searches (`redraft.decoding.types.Spare`) come after all others, as long as there is time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Generic, TypeAlias, TypeVar

from redraft.decoding.backend import Backend, Capability, CostCurve
from redraft.decoding.types import TARGET, Asking, Declined, Rows, Score, Spare
from redraft.errors import RedraftError

T = TypeVar("T")
K = TypeVar("K")

#: After how many times its seconds a search is over whatever delays it.
_PATIENCE = 2

#: Called after every pass with lanes and requests, and the wall time of the pass in seconds.
Watch: TypeAlias = Callable[[Sequence[tuple[int, Score]], float], None]
#: A running generator with its slot in every model's cache.
Lane: TypeAlias = tuple[Asking[T], Mapping[str, int]]


def open_slots(backends: Mapping[str, Backend], count: int, stack: ExitStack | None = None) -> list[dict[str, int]]:
    """Open slots for ``count`` decodings: a number in the cache of every model, by the model's name.

    Args:
        stack: closes them.

    Raises:
        CapabilityError: a model has fewer free slots.
    """
    opened: list[dict[str, int]] = [{} for _ in range(count)]
    for slots in opened:
        for name, backend in backends.items():
            slots[name] = backend.open_slot()
            if stack is not None:
                stack.callback(backend.close_slot, slots[name])
    return opened


def run_together(lanes: Sequence[Lane[T]], backends: Mapping[str, Backend], watch: Watch | None = None) -> list[T]:
    """Run several decodings to the end; return the results in the order of ``lanes``.

    Raises:
        ContextOverflow: a request exceeds the context length; all lanes are abandoned.
    """
    rounds = _Rounds(lanes, backends)
    for index in range(len(lanes)):
        rounds.step(index, None)
    while rounds.waiting:
        rounds.answer(watch)
    return [rounds.results[index] for index in range(len(lanes))]


class _Rounds(Generic[T]):
    """Rounds of passes until every lane has a result."""

    def __init__(self, lanes: Sequence[Lane[T]], backends: Mapping[str, Backend]) -> None:
        self._lanes, self._backends = lanes, backends
        self.results: dict[int, T] = {}
        self.waiting: dict[int, Score] = {}
        self._searches = [Searching() for _ in lanes]

    def step(self, index: int, rows: Rows | None, *, declined: bool = False) -> None:
        """Go on with a lane until its next request or its end."""
        asking, slots = self._lanes[index]
        try:
            self.waiting[index] = resumed(asking, rows, declined=declined)
        except StopIteration as stop:
            self.results[index] = stop.value
            for name in slots.keys() & self._backends.keys():
                self._backends[name].settle(slots[name])

    def answer(self, watch: Watch | None) -> None:
        """Answer what can share a pass, or end the searches for which there is no time."""
        asked = [index for index, score in self.waiting.items() if score.spare is None]
        if not asked:
            over = [index for index, score in self.waiting.items() if self._is_over(index, score)]
            for index in over:
                del self.waiting[index]
                self.step(index, None, declined=True)
            if over:
                return
            asked = one_search(dict(sorted(self.waiting.items())))
        model = self.waiting[asked[0]].model
        backend = self._backends[model]
        asked = [index for index in asked if self.waiting[index].model == model]
        if Capability.BATCHES not in backend.capabilities:
            asked = asked[:1]
        scores = [(index, self.waiting.pop(index)) for index in asked]
        started = time.perf_counter()
        try:
            answers = backend.score([(self._lanes[index][1][model], score) for index, score in scores])
        except RedraftError:
            if scores[0][1].spare is None:
                raise
            for index in asked:  # the lanes have an output already
                self.step(index, None, declined=True)
            return
        if watch:
            watch(scores, time.perf_counter() - started)
        for index, rows in zip(asked, answers, strict=True):
            self.step(index, rows)

    def _is_over(self, index: int, score: Score) -> bool:
        curve = self._backends[score.model].curve()
        # Processor time, so that other programs do not decide what is found; none is spent on waiting for a server.
        now = time.perf_counter() if curve is None else time.thread_time()
        return bool(score.spare and self._searches[index].is_over(score.spare, curve, now))


def resumed(asking: Asking[T], rows: Rows | None, *, declined: bool = False) -> Score:
    """Go on with a generator, and return its next request.

    Args:
        rows: what it asked for; None starts it.
        declined: whether to end its search instead.

    Raises:
        StopIteration: it has ended; the value is its result.
    """
    return asking.throw(Declined()) if declined else asking.send(rows)  # type: ignore[arg-type]


class Searching:
    """Since when a generator searches; its next search begins with another `Spare`."""

    def __init__(self) -> None:
        self._spare: Spare | None = None
        self._began = 0.0

    def is_over(self, spare: Spare, curve: CostCurve | None, now: float) -> bool:
        """Whether there is no time left for a search at ``now``, in seconds of any one clock.

        Its passes would take too long, or it has run for twice its seconds: other work delays a search, and its result
        should not depend on that.  An unknown cost of passes stands in no search's way.
        """
        if spare is not self._spare:
            self._spare, self._began = spare, now
        expected = curve(spare.tokens) * spare.passes if curve else 0.0
        return expected > spare.seconds or now - self._began > _PATIENCE * spare.seconds


def one_search(waiting: Mapping[K, Score]) -> list[K]:
    """Return the requests of searches that share a pass: all without hypotheses, or the first one with them.

    A search with hypotheses should stay the first until it ends, since a backend keeps the cache of one.
    """
    chains = [lane for lane, score in waiting.items() if not score.is_aside]
    return chains or [next(iter(waiting))]


def run(asking: Asking[T], backend: Backend, slot: int) -> T:
    """Run one decoding on one model."""
    return run_together([(asking, {TARGET: slot})], {TARGET: backend})[0]
