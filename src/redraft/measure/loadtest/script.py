"""What is said in a talk: the utterances of a stream at a given pace, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from redraft.captions.events import Update
from redraft.measure.bench.data import open_stream
from redraft.measure.eval.delays import words
from redraft.measure.eval.stream import Stream


def open_script(data: str, to: str, rate: float) -> Script:
    """What `redraft.measure.bench.data.open_stream` knows, at a pace.

    Args:
        data: ``talk``, the demo's; a test set; or a JSON Lines file.
        to: language of the set's references, which name its files.
        rate: words a second.

    Raises:
        InputError: there is no such data.
    """
    return Script(open_stream(data, to), rate)


@dataclass(frozen=True, slots=True)
class Script:
    """A stream that is spoken.

    A stream with times keeps its rhythm, pauses included, stretched to the pace; else an update comes when the last
    of its words is spoken.

    Attributes:
        stream: the utterances.
        rate: words a second on average, a Chinese or Japanese character being one.
    """

    stream: Stream
    rate: float

    def spoken(self, first: int = 0) -> Iterator[tuple[float, Update]]:
        """All updates for ever, from the segment with the number ``first`` on, each with its second of the talk.

        Every utterance has a name of its own, so that the same text can be said again.
        """
        segments = self._timed()
        start = 0.0
        for number in count():
            updates, length = segments[(first + number) % len(segments)]
            for second, update in updates:
                yield start + second, replace(update, utterance=str(number), time=round(start + second, 3))
            start += length

    def _timed(self) -> list[tuple[list[tuple[float, Update]], float]]:
        """For every segment its updates with their seconds, from the end of the segment before, and its length."""
        stretch, before = self._stretch(), 0.0
        found = []
        for segment in self.stream.segments:
            if stretch:
                seconds = [stretch * ((update.time or 0.0) - before) for update in segment.updates]
                before = segment.updates[-1].time or 0.0
            else:
                seconds = [words(update.text) / self.rate for update in segment.updates]
            found.append((list(zip(seconds, segment.updates, strict=True)), max(seconds)))
        return found

    def _stretch(self) -> float:
        """By what times are multiplied; 0 where there are none that grow."""
        times = [update.time for update in self.stream.updates]
        known = [time for time in times if time is not None]
        if len(known) < len(times) or known != sorted(known) or not known[-1]:
            return 0.0
        return sum(words(segment.source) for segment in self.stream.segments) / self.rate / known[-1]
