"""Measure T(n) independently of other processes, and report when the result is unreliable.

On one thread, the thread's CPU time is used: it stops while another process runs.  Several threads spin while they wait
for each other, so their CPU time also grows while nothing is done; there, wall time is used, from passes during which
all threads had a core.  Of repeated passes the fastest counts, once the two fastest agree.
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

#: Minimum number of rounds, and the maximum if times vary.
ROUNDS, MOST_ROUNDS = 5, 15
#: Seconds after which no further round starts, once there are two.
PATIENCE = 10.0
#: Maximum ratio of the second-fastest pass of a size to the fastest.
AGREEMENT = 1.25
#: Minimum ratio of a pass to one over fewer tokens; a lower ratio is plausible only if the two fastest passes of both
#: sizes differ by less than the second factor.
TOLERANCE, BEYOND_DOUBT = 0.9, 1.1
#: Minimum share of its cores' time that a pass on several threads must have had.
UNDISTURBED = 0.85


@runtime_checkable
class Threaded(Protocol):
    """A backend whose number of threads can be set."""

    def thread_counts(self) -> tuple[int, ...]:
        """Return the numbers of threads for passes at present; empty if they do not run on the CPU."""

    def fixed_threads(self, count: int) -> AbstractContextManager[None]:
        """Run all passes in the block on ``count`` threads, unpadded; 0 leaves the number to the backend."""


@dataclass(frozen=True, slots=True)
class Measured:
    """T(n) on one number of threads.

    Attributes:
        curve: the fastest times.
        spread: for each size, the distance of the median from the fastest, relative to the fastest.
        threads: number of threads; 0 if the backend chooses it.
        problem: why the curve is unreliable; empty if it is reliable.
    """

    curve: CostCurve
    spread: tuple[float, ...]
    threads: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Pass:
    """Duration of a pass, and whether it had its cores to itself."""

    seconds: float
    alone: bool = True


def thread_counts(backend: Backend) -> tuple[int, ...]:
    """Return the numbers of threads on which to measure a curve."""
    return (backend.thread_counts() if isinstance(backend, Threaded) else ()) or (0,)


def measure(backend: Backend, threads: int, show: Callable[[Iterable[int]], Iterable[int]] = iter) -> Measured:
    """Measure T(n), after one warm-up round; more rounds follow until the times agree.

    Args:
        backend: the backend.
        threads: one of `thread_counts`.
        show: wraps the round numbers, for a progress bar.
    """
    fixed = backend.fixed_threads(threads) if isinstance(backend, Threaded) else nullcontext()
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
    """Time a pass of every size."""
    # The resolution of the thread clock is too low on Windows.
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
    """Return why the fastest times are not a reliable curve; empty if they are.

    A longer pass may be faster if the engine switches to other kernels, but no pass is faster than one over a single
    token.
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
    """Return the ratio of the second-fastest time to the fastest."""
    first, second = sorted(seconds)[:2]
    return second / first if first > 0 else 1.0


def best_of(found: Sequence[Measured]) -> CostCurve:
    """Return T(n) of a backend that runs each size on its best number of threads.

    Unreliable measurements count only if all are unreliable.
    """
    curves = [each.curve for each in [each for each in found if not each.problem] or found]
    sizes = max((each.sizes for each in curves), key=len)
    return CostCurve(sizes, tuple(min(each.unpadded(size) for each in curves) for size in sizes))
