"""How much the engine can still take on: measured, so that newcomers are refused before everybody's captions lag."""

from __future__ import annotations

from collections import deque

from redraft.decoding.cost import CostCurve

#: Passes that live speech costs a second in one language, where nothing has been measured yet: 2.5 words a second, an
#: update every two words, and about 16 tokens of plain re-translation for each.  Methods that draft need fewer.
PASSES_A_SECOND = 20.0
#: Seconds over which is measured.
WINDOW = 10.0
_BUCKET = 0.5


class Load:
    """A running measure of the engine's time.

    Args:
        most: the share of its time that the engine may be busy, 0-1, for a newcomer to be admitted.
        curve: what a pass costs; what a lane costs is estimated by it until it has been measured.
    """

    def __init__(self, most: float, curve: CostCurve) -> None:
        self._most = most
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

    def refusal(self, wanted: int, speaking: int, lane_seconds: float, now: float) -> str:
        """Why no more lanes can be admitted, in one sentence; empty if they can.

        Args:
            wanted: how many more there would be.
            speaking: how many of the lanes have worked within the last `WINDOW` seconds, or have only just come.
            lane_seconds: for how long those that have worked were there within that time, all together.
            now: the time, in seconds.
        """
        # What a lane needs, on average, the estimate counting as one lane more, so that the first moments of a lane are
        # not taken for all that it will need.  Batching makes the next one cheaper, never more expensive.
        share = (self.busy(now) + self._estimate) * WINDOW / (lane_seconds + WINDOW)
        expected = max(self.busy(now), share * speaking) + share * wanted
        if expected > self._most:
            more = "1 more language" if wanted == 1 else f"{wanted} more languages"
            return (
                f"the server is at its capacity: {more} would keep it busy for "
                f"{expected:.0%} of the time, and {self._most:.0%} are allowed; try again later"
            )
        return ""
