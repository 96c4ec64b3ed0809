"""Reading mode in files and terminals: growing captions become lines that never change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from redraft.captions.breaks import broken, cells
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.cues import LATE
from redraft.captions.formats.write import CELLS_PER_SECOND, Audience, Writer, by
from redraft.captions.reading import Reading
from redraft.captions.words import UNBREAKABLE, joined

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
        #: Lengths that the translation has reached, in cells, with the first and the last time at which it had each.
        self._reached: list[tuple[int, float, float]] = []
        if caption.start is not None:
            self._reached.append((0, caption.start, caption.start))

    def grown(self, caption: Caption) -> None:
        """Record the length of the translation."""
        self.caption, time = caption, caption.time
        if time is None:
            return
        length = cells(caption.text + caption.unstable)
        before, first, last = self._reached[-1] if self._reached else (-1, time, time)
        if length > before:
            self._reached.append((length, max(time, last), max(time, last)))
        else:
            self._reached[-1] = before, first, max(time, last)

    def times(self, line: str) -> tuple[float | None, float | None]:
        """Return when the words of the next line were spoken: their start and end in seconds, None if unknown."""
        start, self._shown = cells(self._shown), joined(self._shown, line)
        return self._time(start, after=True), self._time(cells(self._shown), after=False)

    def _time(self, length: int, *, after: bool) -> float | None:
        """Return when the translation had a length, interpolated; ``after`` for the last time rather than the first.

        If only one time is known, the words precede it at reading speed, or faster if the utterance before has ended
        too late for that.  They follow it if it is not later than that end.
        """
        if self._reached and (time := self._reached[0][1]) == self._reached[-1][2]:
            if time <= self._since:
                return time + length / CELLS_PER_SECOND
            whole = max(length, self._reached[-1][0])
            lasts = min(whole / CELLS_PER_SECOND, time - self._since)
            return max(0.0, time - lasts * (1 - length / whole)) if whole else time
        before: tuple[int, float, float] | None = None
        for reached, first, last in self._reached:
            if reached > length or (reached == length and not after):
                if before is None:
                    return first
                share = (length - before[0]) / (reached - before[0])
                return before[2] + share * (first - before[2])
            before = reached, first, last
        return None if before is None else before[2]


class RowsWriter(Writer):
    """Converts growing captions to lines that never change (`redraft.captions.reading`).

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

    def show_to(self, audience: Audience) -> None:
        """Publish only the lines of what an audience may see."""
        self.writer.show_to(_OfLines(audience))

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


class _OfLines:
    """What the audience may see of lines, which are named after their utterances."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    @property
    def paused(self) -> bool:
        return self._audience.paused

    def is_hidden(self, utterance: str, language: str) -> bool:
        return self._audience.is_hidden(utterance.rpartition(".")[0], language)
