"""Where the audio of a stream waits, for whoever recognises it: one place, from its arrival until nothing needs it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable
from operator import itemgetter
from time import monotonic

from redraft.speech.audio import RATE

#: Maximum seconds of an utterance that are recognised again.
AGAIN = 30.0
#: Minimum seconds between two remembered arrivals, and for how many seconds they are remembered.
_ARRIVALS_EVERY, _ARRIVALS_KEPT = 0.05, 120.0


class AudioBuffer:
    """The audio of one stream; places in it are numbers of samples since its beginning.

    It is read by one process or connection after another: each begins with the audio that was not forgotten, so nothing
    is lost with the one before.

    Attributes:
        added: number of samples so far.
        first: place of the first sample that was not forgotten, with which the next reader begins.

    Args:
        width: bytes of a sample.
        clock: returns the time in seconds.
    """

    def __init__(self, width: int = 2, clock: Callable[[], float] = monotonic) -> None:
        self.width, self._clock = width, clock
        self.added = self.first = self._next = 0
        self._audio = bytearray()
        #: Places with the times at which the audio before them had arrived.
        self._arrivals: deque[tuple[int, float]] = deque()
        #: Places with the number of samples that are missing before them, from each on.
        self._gaps = [(0, 0)]

    def add(self, samples: bytes) -> None:
        """Add samples, which have just arrived."""
        self._audio += samples
        self.added += len(samples) // self.width
        now, known = self._clock(), self._arrivals
        if known and now - known[-1][1] < _ARRIVALS_EVERY:
            known[-1] = self.added, known[-1][1]
            return
        known.append((self.added, now))
        while now - known[0][1] > _ARRIVALS_KEPT:
            known.popleft()

    def skip(self, samples: int) -> None:
        """Continue after missing samples.

        They are replaced by silence of at most a second, which ends the utterance: what follows does not belong to it.
        """
        silence = min(samples, RATE)
        self.add(bytes(silence * self.width))
        self._gaps.append((self.added, self._gaps[-1][1] + samples - silence))

    def take(self, most: int) -> bytes:
        """Return the next samples for the reader, at most ``most``; empty if it has all."""
        begin = (self._next - self.first) * self.width
        piece = bytes(self._audio[begin : begin + most * self.width])
        self._next += len(piece) // self.width
        return piece

    def again(self) -> int:
        """Let another reader begin; return the place of its first sample."""
        self._next = self.first
        return self.first

    def forget(self, place: int) -> None:
        """Drop the samples before a place, as far as the reader has them."""
        if (samples := min(place, self._next) - self.first) > 0:
            del self._audio[: samples * self.width]
            self.first += samples

    def clear(self) -> None:
        """Drop all samples; places and times stay known."""
        self._audio.clear()
        self.first = self._next = self.added

    def arrival(self, place: int) -> float:
        """Return when the samples up to a place had arrived; the current time if they have not, or it is forgotten."""
        return next((when for added, when in self._arrivals if added >= place), self._clock())

    def original(self, place: int, *, end: bool = False) -> int:
        """Return the place in the stream as it was sent, with the samples that are missing here.

        If samples are missing at that place, it is the place after them or, with ``end``, before them.
        """
        found = (bisect_left if end else bisect_right)(self._gaps, place, key=itemgetter(0))
        return place + self._gaps[max(0, found - 1)][1]
