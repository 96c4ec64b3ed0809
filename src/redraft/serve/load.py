"""Measures the engine's load, to refuse new sessions before the captions of the running ones lag."""

from __future__ import annotations

from collections import deque

from redraft.decoding.cost import CostCurve

#: Assumed passes per second of live speech in one language, until there are measurements: 2.5 words per second, an
#: update every two words, about 16 tokens of plain re-translation each.  Methods that draft need fewer.
PASSES_A_SECOND = 20.0
#: Seconds over which the load is measured.
WINDOW = 10.0
_BUCKET = 0.5


class Load:
    """Measures which share of its time the engine works.

    Args:
        most: maximum share of busy time, 0-1, up to which new lanes are admitted.
        curve: cost of a pass; used to estimate the cost of a lane before there are measurements.
    """

    def __init__(self, most: float, curve: CostCurve) -> None:
        self._most = most
        self._estimate = PASSES_A_SECOND * curve(1)
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

    def refusal(self, wanted: int, speaking: int, lane_seconds: float, now: float) -> str:
        """Return why no more lanes can be admitted, in one sentence; empty if they can.

        Args:
            wanted: number of new lanes.
            speaking: number of lanes that worked in the last `WINDOW` seconds or were just admitted.
            lane_seconds: total time in seconds that the lanes that worked have existed, each counted up to `WINDOW`.
            now: the time in seconds.
        """
        # Average share of time per lane.  The estimate counts as one lane of a full window, since the first moments of
        # a lane say little.  With batching another lane costs less than the average, never more.
        share = (self.busy(now) + self._estimate) * WINDOW / (lane_seconds + WINDOW)
        expected = max(self.busy(now), share * speaking) + share * wanted
        if expected > self._most:
            more = "1 more language" if wanted == 1 else f"{wanted} more languages"
            return (
                f"the server is at its capacity: {more} would keep it busy for "
                f"{expected:.0%} of the time, and {self._most:.0%} are allowed; try again later"
            )
        return ""
