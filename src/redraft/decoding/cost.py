"""The cost of a pass: T(n), the time of a pass over n new tokens, for a model on this machine.

Kernels multiply in tiles, so a pass may cost more than a longer one.  Such a pass is padded to the length of the
cheapest longer one (`CostCurve.padded`): methods that draft by cost fill it with guesses, which are then free, and the
backend with tokens whose rows nothing reads.
"""

from __future__ import annotations

import statistics
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from redraft.decoding.accept.exact import Everything
from redraft.decoding.backend import Backend
from redraft.decoding.decode import decode
from redraft.decoding.draft.previous import PreviousOutput
from redraft.decoding.drive import run
from redraft.decoding.types import Score

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96)
#: Number of ids in the cache before the measured pass: about a prompt with half of its translation.
CONTEXT = 100
#: Minimum share of a pass's time that padding must save; times measured in one run differ by less.
LEAST_SAVED = 0.03


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds per pass by number of new tokens, interpolated linearly between measured sizes and extrapolated beyond.

    A pass that costs more than a longer one costs as much as that one, to whose length it is padded.

    Attributes:
        sizes: numbers of new tokens, ascending from 1.
        seconds: seconds of one pass for each size.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    _table: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _padded: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        growing = all(a < b for a, b in pairwise(self.sizes))
        if len(self.sizes) < 2 or len(self.sizes) != len(self.seconds) or self.sizes[0] != 1 or not growing:
            raise ValueError("a cost curve needs two growing sizes or more, from 1 on, and the seconds of each")
        # Precomputed, since they are called for every draft token and every pass.
        table = [self.unpadded(new) for new in range(1, self.sizes[-1] + 1)]
        padded = list(range(1, len(table) + 1))
        cheapest = len(table)
        for new in range(len(table), 0, -1):
            if table[cheapest - 1] < (1 - LEAST_SAVED) * table[new - 1]:
                padded[new - 1] = cheapest
            if table[new - 1] <= table[cheapest - 1]:
                cheapest = new
            table[new - 1] = table[cheapest - 1]
        object.__setattr__(self, "_table", tuple(table))
        object.__setattr__(self, "_padded", tuple(padded))

    def __call__(self, new: int) -> float:
        """Return the seconds of a pass over ``new`` tokens, at least 1."""
        return self._table[new - 1] if new <= len(self._table) else self.unpadded(new)

    def padded(self, new: int) -> int:
        """Return the number of tokens, ``new`` or more, to which a pass over ``new`` tokens is padded."""
        return self._padded[new - 1] if new <= len(self._padded) else new

    def break_even(self, drafted: int) -> int:
        """Return how many of ``drafted`` tokens must be accepted for their pass to save time over single tokens.

        A pass that accepts a tokens yields a + 1.  The result is above ``drafted`` if the pass never saves time.
        """
        return int(self(drafted + 1) / self(1))

    def unpadded(self, new: int) -> float:
        """Return the seconds of a pass over exactly ``new`` tokens, at least 1."""
        last = len(self.sizes) - 1
        right = min(max(bisect_left(self.sizes, new), 1), last)
        low, high = self.sizes[right - 1], self.sizes[right]
        share = (new - low) / (high - low)
        below, above = self.seconds[right - 1 : right + 1]
        if share > 1:  # a slope measured with noise may be negative
            above = max(above, below)
        return (1 - share) * below + share * above


def sample(backend: Backend, slot: int, clock: Callable[[], float] | None = None) -> list[float]:
    """Time one pass of each size in `sizes_for`, with `CONTEXT` ids (or as many as fit) in the slot's cache.

    A pass includes everything in one turn of the decoding loop: the argmax of every row, which rows compute at once,
    and the overhead of loop and driver.  Times are wall times unless a ``clock`` is given: with one thread,
    `time.process_time` excludes other programs.

    Args:
        backend: the model.
        slot: the slot to use.
        clock: returns the time in seconds.
    """
    prefix = context_ids(backend)  # also for an encoder; models without one do not read it
    now = clock or time.perf_counter
    seconds = []
    for size in sizes_for(backend):
        # The last prefix token is always run again, so a pass over n tokens has a draft of n - 1.
        draft = (prefix[0],) * (size - 1)
        backend.score([(slot, Score(prefix, encoder=prefix))])
        started = now()
        asking = decode(
            prefix, PreviousOutput(), Everything(), previous=draft, encoder=prefix, end_tokens=frozenset(), limit=size
        )
        run(asking, backend, slot)
        seconds.append(now() - started)
    return seconds


def context_ids(backend: Backend, first: int = 1) -> tuple[int, ...]:
    """Return the ids before a measured pass, `CONTEXT` or as many as fit; any do, and they start with ``first``."""
    length, different = min(CONTEXT, backend.context_length // 2), min(200, backend.vocabulary_size - 1)
    return tuple(1 + (first - 1 + position) % different for position in range(length))


def sizes_for(backend: Backend, sizes: Sequence[int] = ()) -> tuple[int, ...]:
    """Return those of ``sizes``, by default of `SIZES`, that fit into the other half of a backend's context."""
    return tuple(size for size in sizes or SIZES if size <= max(2, backend.context_length // 2 - 1))


def curve(samples: Sequence[Sequence[float]]) -> CostCurve:
    """Return the curve of the medians of several samples."""
    return CostCurve(SIZES[: len(samples[0])], tuple(map(statistics.median, zip(*samples, strict=True))))


def least(samples: Sequence[Sequence[float]]) -> CostCurve:
    """Return the curve of the minimums of several samples; other load only adds to times."""
    return CostCurve(SIZES[: len(samples[0])], tuple(map(min, zip(*samples, strict=True))))
