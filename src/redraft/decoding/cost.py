"""The cost of a pass: T(n), the time of a pass over n new tokens."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds per pass by number of new tokens, interpolated linearly between known sizes and extrapolated beyond.

    Attributes:
        sizes: numbers of new tokens, ascending from 1.
        seconds: seconds of one pass for each size.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        growing = all(a < b for a, b in pairwise(self.sizes))
        if len(self.sizes) < 2 or len(self.sizes) != len(self.seconds) or self.sizes[0] != 1 or not growing:
            raise ValueError("a cost curve needs two growing sizes or more, from 1 on, and the seconds of each")

    def __call__(self, new: int) -> float:
        """Return the seconds of a pass over ``new`` tokens, at least 1."""
        last = len(self.sizes) - 1
        right = min(max(bisect_left(self.sizes, new), 1), last)
        low, high = self.sizes[right - 1], self.sizes[right]
        share = (new - low) / (high - low)
        below, above = self.seconds[right - 1 : right + 1]
        if share > 1:  # a slope measured with noise may be negative
            above = max(above, below)
        return (1 - share) * below + share * above

    def break_even(self, drafted: int) -> int:
        """Return how many of ``drafted`` tokens must be accepted for their pass to save time over single tokens.

        A pass that accepts a tokens yields a + 1.  The result is above ``drafted`` if the pass never saves time.
        """
        return int(self(drafted + 1) / self(1))
