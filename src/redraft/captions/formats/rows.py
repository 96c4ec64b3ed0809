"""Reading mode: growing captions become complete lines that never change, as on television.

The growing translation is broken into lines.  A line is complete when more text follows it and it has been unchanged
for ``patience`` seconds, or when it has waited for ``longest`` seconds; then it is shown and never changes.  Later
revisions only affect the lines after it, so NE of the display is 0 by construction.  The price is lag, bounded by
``longest``, and that errors in complete lines stay.  Where the shown lines end in a revised text, the units on both
sides of that place decide (`redraft.captions.align.seam`).

By convention, lines have at most 32 to 42 character cells (CEA-608 has 32, European television 37, streaming services
42); see `redraft.captions.breaks`.

The pages' ``reading.js`` does the same in a browser; ``tests/captions/reading.json`` has cases for both.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from redraft.captions.align import seam
from redraft.captions.breaks import SPACE, broken, cells
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.cues import LATE
from redraft.captions.formats.write import CELLS_PER_SECOND, Writer, by
from redraft.captions.words import UNBREAKABLE, joined
from redraft.errors import whole

NARROWEST, WIDEST = 16, 80


@dataclass(slots=True)
class _Waiting:
    """A line not shown yet: its units, when they last changed, and when the line was started."""

    units: Sequence[str]
    stood: float
    waited: float


class Reading:
    """The lines of one language.

    Args:
        width: maximum character cells per line, 16 to 80.
        patience: seconds for which a line must be unchanged before it is shown.
        longest: seconds after which it is shown in any case, at least ``patience``.

    Raises:
        OptionError: the width is out of range.
    """

    def __init__(self, width: int = 37, patience: float = 1.0, longest: float = 4.0) -> None:
        self._width = whole("line width", width, NARROWEST, WIDEST)
        self._patience, self._longest = patience, longest
        self._utterance: str | None = None
        #: The units of the last text that stand for the shown lines, and those behind them, without space.
        self._begun: list[str] = []
        self._behind: list[str] = []
        self._waiting: list[_Waiting] = []

    def read(self, caption: Caption, now: float) -> list[str]:
        """Add a caption; return the lines that are now complete.

        Args:
            caption: the next caption of the language; of a partial one only the shown text is used.
            now: the time in seconds, by a monotonic clock.
        """
        left_over: list[str] = []
        if caption.utterance != self._utterance:
            left_over = self.end()  # the previous utterance had no final caption
            self._utterance, self._begun, self._behind, self._waiting = caption.utterance, [], [], []
        units = UNBREAKABLE.findall(SPACE.sub(" ", caption.text).strip())
        bare = [unit.rstrip(" ") for unit in units]
        place = seam(self._begun, self._behind, bare)
        if place < len(units):  # else what is missing may come back
            self._behind = bare[place:]
            if place >= len(self._begun):
                self._begun = bare[:place]
        lines = broken(units[place:], self._width)
        full = lines if caption.final else lines[:-1]
        self._waiting = [self._noted(place, line, now) for place, line in enumerate(full)]
        if caption.final:
            self._utterance = None
            return [*left_over, *self.end()]
        return [*left_over, *self.due(now)]

    def due(self, now: float) -> list[str]:
        """Return the lines that have become complete since the last caption."""
        found: list[str] = []
        while self._waiting:
            line = self._waiting[0]
            if now - line.stood < self._patience and now - line.waited < self._longest:
                break
            found.append(self._show(self._waiting.pop(0)))
        return found

    @property
    def deadline(self) -> float | None:
        """When the next line becomes complete if nothing changes; None if no line waits."""
        if not self._waiting:
            return None
        return min(self._waiting[0].stood + self._patience, self._waiting[0].waited + self._longest)

    def end(self) -> list[str]:
        """Return the lines that still wait, because the utterance has no further captions."""
        lines = [self._show(line) for line in self._waiting]
        self._waiting = []
        return lines

    def _noted(self, place: int, units: Sequence[str], now: float) -> _Waiting:
        if place >= len(self._waiting):
            return _Waiting(units, now, now)
        before = self._waiting[place]
        return _Waiting(units, before.stood if before.units == units else now, before.waited)

    def _show(self, line: _Waiting) -> str:
        self._begun += self._behind[: len(line.units)]
        del self._behind[: len(line.units)]
        return "".join(line.units).strip()


#: Maximum number of utterances without a final caption of which reading mode knows the lines, over all languages.
MOST_OPEN = 64


class _Growing:
    """The lines of one utterance in one language.

    Attributes:
        caption: its newest caption.
        speaker: who speaks it, if the name is in its text.
        reading: breaks it into lines.
        count: number of its lines so far.
    """

    def __init__(self, caption: Caption, width: int, since: float) -> None:
        self.caption, self.reading, self.count = caption, Reading(width), 0
        self.speaker: str | None = None
        #: End of the utterance before.
        self._since = since
        self._shown = ""
        #: Lengths that the translation has reached, in cells, each twice: with the first and the last time at which it
        #: had it.
        self._lengths: list[int] = []
        self._times: list[float] = []
        if caption.start is not None:
            self._reach(0, caption.start)

    def grown(self, caption: Caption) -> None:
        """Record the length of the translation."""
        self.caption = caption
        if caption.time is not None:
            self._reach(cells(caption.text + caption.unstable), caption.time)

    def _reach(self, length: int, time: float) -> None:
        time = max([time, *self._times[-1:]])
        if length > max(self._lengths, default=-1):
            self._lengths += [length] * 2
            self._times += [time] * 2
        else:
            self._times[-1] = time

    def times(self, line: str) -> tuple[float | None, float | None]:
        """Return when the words of the next line were spoken: their start and end in seconds, None if unknown."""
        start, self._shown = cells(self._shown), joined(self._shown, line)
        return self._time(start, bisect_right), self._time(cells(self._shown), bisect_left)

    def _time(self, length: int, bisect: Callable[[list[int], int], int]) -> float | None:
        """Return when the translation had a length, interpolated; `bisect` finds the first or the last time.

        If only one time is known, the words precede it at reading speed, or faster if the utterance before has ended
        too late for that.  They follow it if it is not later than that end.
        """
        lengths, times = self._lengths, self._times
        if not times:
            return None
        if times[0] == times[-1]:
            whole = max(length, lengths[-1])
            end = times[0] if times[0] > self._since else times[0] + whole / CELLS_PER_SECOND
            lengths, times = [0, whole], [max(min(self._since, times[0]), end - whole / CELLS_PER_SECOND), end]
        place = bisect(lengths, length)
        if place in (0, len(times)):
            return times[0 if place == 0 else -1]
        share = (length - lengths[place - 1]) / (lengths[place] - lengths[place - 1])
        return times[place - 1] + share * (times[place] - times[place - 1])


class RowsWriter(Writer):
    """Converts growing captions to lines that never change (`redraft.captions.formats.rows`).

    Lines are named after their utterance: ``7.1``, ``7.2``.  Their times, also those of their subtitles, are those of
    their words, estimated from how the captions grew.  How long a line has waited is measured by the times of the
    captions, even if these start again, or by the clock if they have none.  Where a format puts the speaker's name
    before the text, it is in the first line of an utterance, and in each line after one of another speaker.

    Args:
        writer: receives the lines; closed together with this one.
        width: width of the lines in character cells.
        clock: returns the time in seconds.
        live: whether captions come while they are spoken, so that a line may be complete before the next one comes.

    Raises:
        OptionError: the width is out of range.
    """

    def __init__(
        self, writer: Writer, width: int, clock: Callable[[], float] = time.monotonic, *, live: bool = False
    ) -> None:
        self.writer: Writer = writer
        self._width, self._clock, self._live = width, clock, live
        Reading(width)  # checks the width before the first caption
        self._named = not writer.names_speakers
        writer.expect_lines()
        #: Time of the latest final caption of each language.
        self._ended: dict[str, float] = {}
        self._open: dict[tuple[str, str], _Growing] = {}
        #: Speaker of the last line of each language.
        self._speakers: dict[str, str | None] = {}
        #: Time of the stream, and when it was that by the clock.
        self._now, self._since = 0.0, clock()
        #: Seconds by which times are late, because they have started again.
        self._behind = 0.0
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._error: BaseException | None = None

    def write(self, event: Event) -> None:
        """Write the lines that an event completes, or time has completed before it; failures are passed on."""
        with self._lock:
            self._stop()
            if isinstance(event, Failure):
                self.writer.write(event)
            else:
                self._pass(event.time)
                self._read(event)
            self._wait()

    def close(self) -> None:
        """Write the complete lines and close the writer; incomplete ones of unfinished utterances are dropped."""
        with self._lock:
            self._stop()
            for growing in self._open.values():
                self._put(growing, growing.reading.end())
            self._open.clear()
            self.writer.close()

    def _read(self, caption: Caption) -> None:
        speaker = caption.speaker if self._named else None
        if self._named:
            caption = replace(caption, text=by(caption.speaker, caption.text), speaker=None)
        key = caption.language, caption.utterance
        if key not in self._open:
            for growing in self._open.values():  # an utterance may never have a final caption
                if growing.caption.language == caption.language:
                    self._put(growing, growing.reading.end())
            since = self._ended.get(caption.language, 0.0)
            self._open[key] = _Growing(caption, self._width, since)
            if len(self._open) > MOST_OPEN:
                self._open.pop(next(iter(self._open)))
        growing = self._open[key]
        growing.speaker = speaker
        growing.grown(caption)
        self._put(growing, growing.reading.read(caption, self._now))
        if caption.final:
            del self._open[key]
            self.writer.end_lines(caption)
            self._ended[caption.language] = max(self._ended.get(caption.language, 0.0), caption.time or 0.0)

    def _pass(self, time: float | None) -> None:
        """Write the lines that are complete at a time of the stream; None for the present by the clock."""
        clock = self._clock()
        if time is not None and time + self._behind < self._now - LATE:
            self._behind = self._now - time
        self._now = self._now + clock - self._since if time is None else max(time + self._behind, self._now)
        self._since = clock
        for growing in self._open.values():
            self._put(growing, growing.reading.due(self._now))

    def _put(self, growing: _Growing, lines: Sequence[str]) -> None:
        caption = growing.caption
        parts = [part for line in lines for part in self._with_name(growing, line)]
        for place, (line, said) in enumerate(parts, 1):
            growing.count += 1
            start, ended = growing.times(said)
            last = caption.final and place == len(parts)
            if last and caption.time is not None:
                ended = max(caption.time, ended or 0.0)
            row = replace(caption, utterance=f"{caption.utterance}.{growing.count}", text=line, unstable="", final=True)
            # Only the last line of an utterance can be cut off.
            self.writer.write(replace(row, start=start, time=ended, cut=caption.cut and last))

    def _with_name(self, growing: _Growing, line: str) -> Iterator[tuple[str, str]]:
        """Yield a line, after its speaker's name if it follows another one's, and each part also without the name."""
        before = self._speakers.get(growing.caption.language, growing.speaker)
        self._speakers[growing.caption.language] = growing.speaker
        named = by(growing.speaker, line)
        if before == growing.speaker or named == line or line.startswith(by(growing.speaker, " ").rstrip()):
            yield line, line
            return
        name = len(named) - len(line)
        for units in broken(UNBREAKABLE.findall(named), self._width):
            part = "".join(units).strip()
            yield part, part[name:].strip()
            name = max(0, name - len("".join(units)))

    def _wait(self) -> None:
        """Look again when the next line becomes complete, unless a caption comes first."""
        if self._timer is not None:
            self._timer.cancel()
        deadlines = [each for growing in self._open.values() if (each := growing.reading.deadline) is not None]
        if self._live and deadlines:
            self._timer = threading.Timer(max(0.0, min(deadlines) - self._now), self._tick)
            self._timer.daemon = True
            self._timer.start()

    def _stop(self) -> None:
        """Stop waiting; raises what went wrong meanwhile."""
        if self._timer is not None:
            self._timer.cancel()
        if self._error is not None:
            raise self._error

    def _tick(self) -> None:
        with self._lock:
            try:
                self._pass(None)
            except BaseException as error:
                self._error = error
            else:
                self._wait()
