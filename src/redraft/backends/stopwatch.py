"""Measures T(n) so that the time of other processes does not count, and says when it cannot be trusted.

On one thread the processor's time of that thread is taken: it stands still while another process runs.  Threads that
wait for each other spin, so there the processor's time grows while nothing is done; wall time is taken instead, of
those passes during which all threads had a core.  Of repeated passes the least counts, once two of them agree on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Protocol, runtime_checkable

from redraft.decoding import cost
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve

#: Rounds of a measurement: at least, and at most where times vary.
ROUNDS, MOST_ROUNDS = 5, 15
#: Seconds after which no further round begins, once there are two.
PATIENCE = 10.0
#: The second-least time of a size may be this many times the least.
AGREEMENT = 1.25
#: A pass may take this share of what one over fewer tokens takes; below it, both must be beyond doubt.
TOLERANCE, BEYOND_DOUBT = 0.9, 1.1
#: Share of its cores' time that a pass on several threads must have had.
UNDISTURBED = 0.85


@runtime_checkable
class Threaded(Protocol):
    """A backend that can be told on how many threads to run."""

    def thread_counts(self) -> tuple[int, ...]:
        """The numbers of threads that its passes may run on now; none where the processor does not run them."""

    def fixed_threads(self, count: int) -> AbstractContextManager[None]:
        """Run all passes meanwhile on so many."""


@dataclass(frozen=True, slots=True)
class Measured:
    """T(n) on one number of threads.

    Attributes:
        curve: the least times.
        spread: for each size, how far the median was above the least, as a share of it.
        threads: how many; 0 where that is the backend's own affair.
        problem: why the curve cannot be trusted, in words; empty if it can.
    """

    curve: CostCurve
    spread: tuple[float, ...]
    threads: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Pass:
    """What a pass took, and whether it had its cores for itself."""

    seconds: float
    alone: bool = True


def thread_counts(backend: Backend) -> tuple[int, ...]:
    """The numbers of threads that a curve is measured on."""
    return (backend.thread_counts() if isinstance(backend, Threaded) else ()) or (0,)


def measure(backend: Backend, threads: int, show: Callable[[Iterable[int]], Iterable[int]] = iter) -> Measured:
    """T(n) on so many threads, after one round that is not counted; more rounds while the times do not agree.

    Args:
        threads: one of `thread_counts`.
        show: put around the numbers of the rounds, for a progress bar.
    """
    fixed = backend.fixed_threads(threads) if threads and isinstance(backend, Threaded) else nullcontext()
    sizes, started = cost.sizes_for(backend), time.monotonic()
    rounds: list[list[_Pass]] = []
    slot, problem = backend.open_slot(), ""
    try:
        with fixed:
            _round(backend, slot, threads)
            for done in show(range(1, MOST_ROUNDS + 1)):
                rounds.append(_round(backend, slot, threads))
                undisturbed = [[each.seconds for each in passes if each.alone] for passes in zip(*rounds, strict=True)]
                problem = doubt(sizes, undisturbed)
                late = done > 1 and time.monotonic() - started > PATIENCE
                if late or (done >= ROUNDS and not problem):
                    break
    finally:
        backend.close_slot(slot)
    # Disturbed passes are better than none.
    every = [[each.seconds for each in passes] for passes in zip(*rounds, strict=True)]
    times = [some or all_ for some, all_ in zip(undisturbed, every, strict=True)]
    spread = tuple(median(seconds) / min(seconds) - 1 if min(seconds) > 0 else 0.0 for seconds in times)
    return Measured(CostCurve(sizes, tuple(map(min, times))), spread, threads, problem)


def _round(backend: Backend, slot: int, threads: int) -> list[_Pass]:
    """A pass of every size."""
    # The clock of threads ticks too slowly on Windows.
    if threads == 1 and os.name != "nt":
        return [_Pass(seconds) for seconds in cost.sample(backend, slot, time.thread_time)]
    spent: list[float] = []

    def clock() -> float:
        spent.append(time.process_time())
        return time.perf_counter()

    seconds = cost.sample(backend, slot, clock)
    cores = min(threads, os.cpu_count() or threads)
    used = [after - before for before, after in zip(spent[::2], spent[1::2], strict=True)]
    return [
        _Pass(taken, threads < 2 or own >= UNDISTURBED * cores * taken)
        for taken, own in zip(seconds, used, strict=True)
    ]


def doubt(sizes: Sequence[int], times: Sequence[Sequence[float]]) -> str:
    """Why the least of some times is no curve to go by, in words; empty if it is.

    A longer pass may be faster where the engine changes to other kernels, but no pass is faster than one over a token.

    Args:
        times: for each size, those that were measured.
    """
    for size, seconds in zip(sizes, times, strict=True):
        if len(seconds) < 2:
            return f"other processes took the cores during passes over {size} tokens"
        if _ratio(seconds) > AGREEMENT:
            return f"the two fastest passes over {size} tokens differ by {_ratio(seconds) - 1:.0%}"
    least = [min(seconds) for seconds in times]
    for size, shortest in zip(sizes, least, strict=True):
        if shortest < TOLERANCE * least[0]:
            return f"a pass over {size} tokens seems to take {shortest / least[0]:.2f} of the time of one over 1"
    for longer in range(1, len(sizes)):
        shorter = max(range(longer), key=least.__getitem__)
        sure = max(_ratio(times[longer]), _ratio(times[shorter])) < BEYOND_DOUBT
        if least[longer] < TOLERANCE * least[shorter] and not sure:
            words = f"of the time of one over {sizes[shorter]}"
            return f"a pass over {sizes[longer]} tokens seems to take {least[longer] / least[shorter]:.2f} {words}"
    return ""


def _ratio(seconds: Sequence[float]) -> float:
    """The second-least time over the least."""
    first, second = sorted(seconds)[:2]
    return second / first if first > 0 else 1.0


def best_of(found: Sequence[Measured]) -> CostCurve:
    """T(n) of a backend that runs each size on its best number of threads.

    Those that cannot be trusted count only where none can.
    """
    curves = [each.curve for each in [each for each in found if not each.problem] or found]
    sizes = max((each.sizes for each in curves), key=len)
    return CostCurve(sizes, tuple(min(each(size) for each in curves) for size in sizes))
