"""Warnings for live speech: captions are far behind, or nothing is recognised."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

from redraft.captions.events import Event, Failure, Update
from redraft.captions.formats.read import Item
from redraft.speech.audio import RATE, Samples

#: Seconds behind from which captions are late, and below which they have caught up.
LATE, CAUGHT_UP = 5.0, 2.5
#: Seconds without audio after which the source has paused, so that what follows was spoken later.
_GAP = 1.0


class Delay:
    """Measures how far the captions of a live source are behind, from when their words were spoken.

    Audio comes at the speed of speech and can be read too late, but never too early, so the earliest block shows when
    the source began.  Without audio, words are as old as the update with them.

    Args:
        warn: called with one sentence when captions fall behind, and again when the distance has doubled.
        speed: how many times faster than speech the source is.
        clock: returns the time in seconds.

    Attributes:
        able: returns what the model that translates can do here; empty as long as it is unknown.
        remedy: what helps if the recogniser is behind.
    """

    def __init__(
        self, warn: Callable[[str], object], speed: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._warn, self._speed, self._clock = warn, speed, clock
        self._dropped: Callable[[], float] = lambda: 0.0
        self._began = math.inf
        self._read = self._recogniser = 0.0
        #: Seconds behind beyond which the next warning comes.
        self._limit = LATE
        #: When a connection was last lost; what was spoken before is late because of that.
        self._away = -math.inf
        self.able: Callable[[], str] = str
        self.remedy = "choose a smaller model or a machine with more cores"

    def news(self, sentence: str) -> None:
        """Say that a connection is lost or back, and report no delay that comes from that."""
        self._away = self._clock()
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
            if not isinstance(block, Failure):
                self._read += len(block) / RATE
                began = self._clock() - self._due(self._read)
                if began < self._began or self._clock() - asked >= _GAP:
                    self._began = began
            yield block

    def recognised(self, items: Iterable[Item]) -> Iterator[Item]:
        """Pass on what is recognised."""
        for item in items:
            if isinstance(item, Update) and item.time is not None:
                self._recogniser = self.behind(item.time)
            yield item

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
            self._limit = LATE
        if captions <= self._limit or self._clock() - captions <= self._away:
            return
        self._limit = 2 * captions
        if self._recogniser > captions / 2:
            self._warn(f"the recogniser is {captions:.0f} s behind the speech: {self.remedy}")
        else:
            remedy = self.able() or "choose fewer languages, a smaller model, or a machine with more cores"
            self._warn(f"captions are {captions:.0f} s behind the speech: {remedy}")

    def _due(self, position: float) -> float:
        """Return how many seconds after the source began the audio up to a position was spoken."""
        return (position + self._dropped()) / self._speed


#: Seconds without words after which this is reported.
LONG = 30.0
#: A block is silent if its samples differ by less than this; full scale is 2.
_SILENT = 0.004
#: What to do if there is no sound from a microphone, and from the computer itself.
SILENT_MICROPHONE = "if somebody is speaking, check the microphone"
SILENT_SYSTEM = "if something is playing, check that it is not muted, and which output it goes to"
_NO_WORDS = "although there is sound: it may be noise, music, or another language than --from"


class NoWords:
    """Watches a source of audio for stretches in which no word is recognised.

    Args:
        warn: called with one sentence.
        live: whether to warn after `LONG` seconds, and again each time that the stretch has doubled. A source
            without a single word is always reported, at its end at the latest.
        silent: what to do if there is no sound.
    """

    def __init__(self, warn: Callable[[str], object], *, live: bool, silent: str = SILENT_MICROPHONE) -> None:
        self._warn, self._live, self._silent = warn, live, silent
        self._seconds, self._limit = 0.0, LONG
        self._sound = self._done = False

    def again(self) -> None:
        """Begin another stretch, since the recogniser could not be reached."""
        self._seconds, self._limit = 0.0, LONG

    def blocks(self, blocks: Iterable[Samples | Failure]) -> Iterator[Samples | Failure]:
        """Pass on the blocks of the source."""
        for block in blocks:
            if not isinstance(block, Failure) and len(block):
                self._seconds += len(block) / RATE
                self._sound = self._sound or float(block.max() - block.min()) > _SILENT
                if self._live and self._seconds >= self._limit:
                    stretch = f"for {self._seconds:.0f} s"
                    self._warn(
                        f"no words were recognised {stretch}, {_NO_WORDS}"
                        if self._sound
                        else f"no sound {stretch}: {self._silent}"
                    )
                    self._done, self._limit = True, 2 * self._seconds
            yield block

    def recognised(self, items: Iterable[Item]) -> Iterator[Item]:
        """Pass on what is recognised."""
        for item in items:
            if isinstance(item, Failure):
                self._done = True
            elif isinstance(item, Update) and item.text:
                self._done, self._sound = True, False
                self._seconds, self._limit = 0.0, LONG
            yield item
        if not self._done:
            self._warn(f"no speech was recognised{f', {_NO_WORDS}' if self._sound else ': the audio is silent'}")
