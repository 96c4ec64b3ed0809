"""The cost of a pass: T(n), the time of a pass over n new tokens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

#: Seconds that a pass costs, by its number of new tokens.
Cost: TypeAlias = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds per pass by number of new tokens, interpolated linearly between known sizes and extrapolated beyond.

    Attributes:
        sizes: numbers of new tokens, ascending from 1.
        seconds: seconds of one pass for each size.
        requests: number of requests that usually share a pass, at least 1.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    requests: int = 1
    _table: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        growing = all(a < b for a, b in pairwise(self.sizes))
        if len(self.sizes) < 2 or len(self.sizes) != len(self.seconds) or self.sizes[0] != 1 or not growing:
            raise ValueError("a cost curve needs two growing sizes or more, from 1 on, and the seconds of each")
        # Precomputed, since it is called for every draft token.
        object.__setattr__(self, "_table", tuple(map(self._interpolated, range(1, min(self.sizes[-1], 128) + 1))))

    def __call__(self, new: int) -> float:
        """Return the seconds of a pass over ``new`` tokens, at least 1."""
        return self._table[new - 1] if new <= len(self._table) else self._interpolated(new)

    def of_request(self, new: int) -> float:
        """Return the seconds that ``new`` tokens, at least 1, cost one of the requests that usually share a pass.

        Each is counted its part of a pass in which all have as many tokens.
        """
        return self(self.requests * new) / self.requests

    def break_even(self, drafted: int) -> int:
        """Return how many of ``drafted`` tokens must be accepted for their pass to save time over single tokens.

        A pass that accepts a tokens yields a + 1.  The result is above ``drafted`` if the pass never saves time.
        """
        return int(self(drafted + 1) / self(1))

    def _interpolated(self, new: int) -> float:
        last = len(self.sizes) - 1
        right = min(max(bisect_left(self.sizes, new), 1), last)
        low, high = self.sizes[right - 1], self.sizes[right]
        share = (new - low) / (high - low)
        below, above = self.seconds[right - 1 : right + 1]
        if share > 1:  # a slope measured with noise may be negative
            above = max(above, below)
        return (1 - share) * below + share * above


#: Passes cost the same, whatever their length.
FLAT = CostCurve((1, 2), (1.0, 1.0))
