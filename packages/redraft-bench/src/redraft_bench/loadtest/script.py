"""The text of a talk: the utterances of a stream at a given pace, repeated endlessly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from redraft.captions.events import Update
from redraft_bench.bench.data import open_stream
from redraft_bench.eval.delays import words
from redraft_bench.eval.stream import Stream


def open_script(data: str, to: str, rate: float) -> Script:
    """Open a data set as a script (see `redraft_bench.bench.data.open_stream`).

    Args:
        data: ``talk`` for the demo talk, a test set, or a JSON Lines file.
        to: language of the set's references, which is part of its file names.
        rate: words per second.

    Raises:
        InputError: the data set does not exist.
    """
    return Script(open_stream(data, to), rate)


@dataclass(frozen=True, slots=True)
class Script:
    """A stream with a pace.

    A stream with times keeps its rhythm and pauses, scaled to the pace; otherwise each update comes when its last word
    is spoken.

    Attributes:
        stream: the utterances.
        rate: average words per second; a Chinese or Japanese character counts as a word.
    """

    stream: Stream
    rate: float

    def spoken(self, first: int = 0) -> Iterator[tuple[float, Update]]:
        """Yield all updates with their times in seconds, endlessly, starting with segment ``first``.

        Each repetition of an utterance gets a new name.
        """
        segments = self._timed()
        start = 0.0
        for number in count():
            updates, length = segments[(first + number) % len(segments)]
            for second, update in updates:
                yield start + second, replace(update, utterance=str(number), time=round(start + second, 3))
            start += length

    def _timed(self) -> list[tuple[list[tuple[float, Update]], float]]:
        """Return for each segment its updates, timed in seconds from the end of the previous one, and its duration."""
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
        """Return the factor that scales times to the pace; 0 if the stream has no ascending times."""
        times = [update.time for update in self.stream.updates]
        known = [time for time in times if time is not None]
        if len(known) < len(times) or known != sorted(known) or not known[-1]:
            return 0.0
        return sum(words(segment.source) for segment in self.stream.segments) / self.rate / known[-1]
