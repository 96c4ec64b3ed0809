"""Warnings for live speech: captions are far behind, or nothing is recognised."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

from redraft.captions.events import Event, Failure
from redraft.captions.formats.read import Item
from redraft.speech.audio import RATE, Samples

#: Seconds behind from which captions are late, and below which they have caught up.
LATE, CAUGHT_UP = 5.0, 2.5
#: Seconds without audio after which the source has paused, so that what follows was spoken later.
_GAP = 1.0
#: Seconds without words after which this is reported.
LONG = 30.0
#: What to look at then.
_NO_WORDS = "if somebody is speaking, check that the sound arrives, and that it is in the language of --from"


class Watch:
    """Watches a source of audio: how far its captions are behind, and for how long no word was recognised.

    Captions are behind from when their words were spoken.  Live audio comes at the speed of speech and can be read too
    late, but never too early, so the earliest block shows when the source began.  Words without audio are as old as the
    update with them.

    Args:
        warn: called with one sentence when captions fall behind, or after `LONG` seconds without words, and again when
            the distance, or the stretch, has doubled.  A source without a single word is always reported, at its end
            at the latest.
        live: whether the source is live; one that is read as fast as it is recognised is never behind, and only has
            its end.
        speed: how many times faster than speech the source is.
        clock: returns the time in seconds.

    Attributes:
        able: returns what the model that translates can do here; empty as long as it is unknown.
        remedy: what helps if the recogniser is behind.
    """

    def __init__(
        self,
        warn: Callable[[str], object],
        *,
        live: bool,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._warn, self._live, self._speed, self._clock = warn, live, speed, clock
        self._dropped: Callable[[], float] = lambda: 0.0
        self._began = math.inf
        self._read = self._recogniser = 0.0
        #: Seconds behind beyond which the next warning comes.
        self._late = LATE
        #: When a connection was last lost; what was spoken before is late because of that.
        self._away = -math.inf
        self.able: Callable[[], str] = str
        self.remedy = "choose a smaller model or a machine with more cores"
        #: Where the stretch without words began, and how long it may be; whether there were words before, or this was
        #: reported.
        self._since, self._limit, self._done = 0.0, LONG, False

    def news(self, sentence: str) -> None:
        """Say that a connection is lost or back, and report neither a delay nor silence that comes from that."""
        self._away = self._clock()
        self._since, self._limit = self._read, LONG
        self._warn(sentence)

    def blocks(
        self, blocks: Iterator[Samples | Failure], dropped: Callable[[], float] = lambda: 0.0
    ) -> Iterator[Samples | Failure]:
        """Pass on the blocks of the source; ``dropped`` returns the seconds of audio that it has dropped so far."""
        self._dropped = dropped
        while True:
            asked = self._clock()
            if (block := next(blocks, None)) is None:
                return
            if not isinstance(block, Failure) and len(block):
                self._read += len(block) / RATE
                if self._live:
                    began = self._clock() - self._due(self._read)
                    if began < self._began or self._clock() - asked >= _GAP:
                        self._began = began
                    if (silent := self._read - self._since) >= self._limit:
                        self._done, self._limit = True, 2 * silent
                        self._warn(f"no words were recognised for {silent:.0f} s: {_NO_WORDS}")
            yield block

    def recognised(self, items: Iterable[Item]) -> Iterator[Item]:
        """Pass on what is recognised."""
        for item in items:
            if isinstance(item, Failure):
                self._done = True
            else:
                if item.time is not None:
                    self._recogniser = self.behind(item.time)
                if item.text:
                    self._done, self._since, self._limit = True, self._read, LONG
            yield item
        if not self._done:
            self._warn(f"no speech was recognised: {_NO_WORDS}")

    def behind(self, end: float) -> float:
        """Return how many seconds ago speech that ends at ``end`` seconds of the audio was spoken.

        Without `blocks` nothing is ever behind.
        """
        return self._clock() - self._began - self._due(end)

    def check(self, event: Event, waited: float = 0.0) -> None:
        """Warn if an event that has just been written is more than `LATE` seconds behind.

        Args:
            waited: seconds since its update was read, which count if there is no audio.
        """
        captions = waited
        if self._began < math.inf:
            if isinstance(event, Failure) or event.time is None:
                return
            captions = self.behind(event.time)
        if captions < CAUGHT_UP:
            self._late = LATE
        if captions <= self._late or self._clock() - captions <= self._away:
            return
        self._late = 2 * captions
        if self._recogniser > captions / 2:
            self._warn(f"the recogniser is {captions:.0f} s behind the speech: {self.remedy}")
        else:
            remedy = self.able() or "choose fewer languages, a smaller model, or a machine with more cores"
            self._warn(f"captions are {captions:.0f} s behind the speech: {remedy}")

    def _due(self, position: float) -> float:
        """Return how many seconds after the source began the audio up to a position was spoken."""
        return (position + self._dropped()) / self._speed
