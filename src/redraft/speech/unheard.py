"""Say so when nothing is recognised, and whether there is any sound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.speech.audio import RATE, Samples

#: Seconds without words after which this is reported.
LONG = 30.0
#: A block is silent if its samples differ by less than this; full scale is 2.
_SILENT = 0.004
_NO_WORDS = "although there is sound: it may be noise, music, or another language than --from"


class Unheard:
    """Watches a source of audio for stretches in which no word is recognised.

    Args:
        say: called with one sentence.
        live: whether to speak up after `LONG` seconds, and again each time that the stretch has doubled. A source
            without a single word is always reported, at its end at the latest.
    """

    def __init__(self, say: Callable[[str], object], *, live: bool) -> None:
        self._say, self._live = say, live
        self._seconds, self._limit = 0.0, LONG
        self._sound = self._done = False

    def blocks(self, blocks: Iterable[Samples | Failure]) -> Iterator[Samples | Failure]:
        """Pass on the blocks of the source."""
        for block in blocks:
            if not isinstance(block, Failure) and len(block):
                self._seconds += len(block) / RATE
                self._sound = self._sound or float(block.max() - block.min()) > _SILENT
                if self._live and self._seconds >= self._limit:
                    self._speak_up()
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
            self._say(f"no speech was recognised{f', {_NO_WORDS}' if self._sound else ': the audio is silent'}")

    def _speak_up(self) -> None:
        """Report the stretch."""
        for_so_long = f"for {self._seconds:.0f} s"
        if self._sound:
            self._say(f"no words were recognised {for_so_long}, {_NO_WORDS}")
        else:
            self._say(f"no sound {for_so_long}: if somebody is speaking, check the microphone")
        self._done, self._limit = True, 2 * self._seconds
