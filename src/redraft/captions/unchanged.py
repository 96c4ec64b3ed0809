"""Since when something is unchanged, and when it counts as settled.

Speakers pause for so long between sentences, and recognisers rarely revise words that they have kept for so long.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds after which what is unchanged counts as settled; without times, the number of updates.
LONG_PAUSE, UPDATES = 2.0, 4


@dataclass(frozen=True, slots=True)
class Since:
    """Since when something is unchanged.

    Attributes:
        time: time of the first update that has it, in seconds; None if unknown.
        updates: number of updates that have it.
    """

    time: float | None
    updates: int = 1

    def again(self, time: float | None = None) -> Since:
        """Return this after one more update, at ``time``: a clock may go back."""
        known = self.time is not None and time is not None
        return Since(min(self.time, time) if known else self.time, self.updates + 1)  # type: ignore[type-var]

    def is_settled(self, time: float | None) -> bool:
        """Whether it has been unchanged for long enough, at the time of an update that has it."""
        if self.time is None or time is None:
            return self.updates >= UPDATES
        return time - self.time >= LONG_PAUSE
