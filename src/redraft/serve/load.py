"""How much the engine can still take on: measured, so that newcomers are refused before everybody's captions lag."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from redraft.cost import CostCurve

#: Passes that live speech costs a second in one language, where nothing has been measured yet: 2.5 words a second, with
#: an update every two or three words and about six passes each.
PASSES_A_SECOND = 6.0
#: Seconds over which is measured.
WINDOW = 10.0
_BUCKET = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows.

    Attributes:
        lanes: the most target languages of all sessions together.
        busy: the share of its time that the engine may be busy, 0-1, for a newcomer to be admitted.
    """

    lanes: int = 256
    busy: float = 0.85


class Load:
    """A running measure of the engine's time.

    Args:
        limits: what the operator allows.
        curve: what a pass costs; what a lane costs is estimated by it until it has been measured.
    """

    def __init__(self, limits: Limits, curve: CostCurve) -> None:
        self._limits = limits
        self._estimate = PASSES_A_SECOND * curve(1)
        #: Start of each bucket, and the seconds of work in it.
        self._buckets: deque[tuple[float, float]] = deque()

    def worked(self, seconds: float, now: float) -> None:
        """Count work that has just been done."""
        if self._buckets and now - self._buckets[-1][0] < _BUCKET:
            start, before = self._buckets.pop()
            self._buckets.append((start, before + seconds))
        else:
            self._buckets.append((now, seconds))
        while now - self._buckets[0][0] > WINDOW:
            self._buckets.popleft()

    def busy(self, now: float) -> float:
        """The share of the last `WINDOW` seconds that went into work, 0-1; any thread may ask."""
        worked = sum(seconds for start, seconds in list(self._buckets) if now - start <= WINDOW)
        return min(1.0, worked / WINDOW)

    def refusal(self, wanted: int, lanes: int, active: int, fresh: int, now: float) -> str:
        """Why no more lanes can be admitted, in one sentence; empty if they can.

        Args:
            wanted: how many more there would be.
            lanes: how many there are.
            active: how many of them have worked within the last `WINDOW` seconds.
            fresh: how many have not worked since they were admitted: what they cost is still to come.
            now: the time, in seconds.
        """
        if lanes + wanted > self._limits.lanes:
            return (
                f"the server translates into {lanes} of at most {self._limits.lanes} languages at a time, so {wanted} "
                "more cannot be admitted; try again later"
            )
        busy = self.busy(now)
        # What all lanes together need, divided by their number: batching makes the next one cheaper, never dearer.
        share = busy / active if active else self._estimate
        expected = busy + share * (fresh + wanted)
        if expected > self._limits.busy:
            return (
                f"the server is at its capacity: {wanted} more languages would keep it busy for "
                f"{expected:.0%} of the time, and {self._limits.busy:.0%} are allowed; try again later"
            )
        return ""
