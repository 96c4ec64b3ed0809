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

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from redraft.captions.align import seam
from redraft.captions.breaks import SPACE, broken, cells
from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.write import Writer, by
from redraft.captions.words import UNBREAKABLE, joined

#: Maximum number of utterances without a final caption of which reading mode knows the lines, over all languages.
MOST_OPEN = 64


class Reading:
    """The lines of one utterance in one language.

    Args:
        width: maximum character cells per line.
        patience: seconds for which a line must be unchanged before it is shown.
        longest: seconds after which it is shown in any case, at least ``patience``.
    """

    def __init__(self, width: int = 37, patience: float = 1.0, longest: float = 4.0) -> None:
        self._width, self._patience, self._longest = width, patience, longest
        #: The units of the last text that stand for the shown lines, and those behind them, without space.
        self._begun: list[str] = []
        self._behind: list[str] = []
        #: The units of each line that is not shown yet, when they last changed, and when the line was started.
        self._waiting: list[tuple[Sequence[str], float, float]] = []

    def read(self, caption: Caption, now: float) -> list[str]:
        """Add a caption; return the lines that are now complete.

        Args:
            caption: the next caption; of a partial one only the shown text is used.
            now: the time in seconds, by a monotonic clock.
        """
        units = UNBREAKABLE.findall(SPACE.sub(" ", caption.text).strip())
        bare = [unit.rstrip(" ") for unit in units]
        place = seam(self._begun, self._behind, bare)
        if place < len(units):  # else what is missing may come back
            self._behind = bare[place:]
            if place >= len(self._begun):
                self._begun = bare[:place]
        lines = broken(units[place:], self._width)
        before = self._waiting
        self._waiting = [(line, now, now) for line in (lines if caption.final else lines[:-1])]
        for number, (old, new) in enumerate(zip(before, self._waiting, strict=False)):
            self._waiting[number] = new[0], old[1] if old[0] == new[0] else now, old[2]
        return self.due(inf if caption.final else now)

    def due(self, now: float) -> list[str]:
        """Return the lines that have become complete since the last caption."""
        found: list[str] = []
        while self._waiting:
            units, stood, waited = self._waiting[0]
            if now - stood < self._patience and now - waited < self._longest:
                break
            del self._waiting[0]
            self._begun += self._behind[: len(units)]
            del self._behind[: len(units)]
            found.append("".join(units).strip())
        return found

    @property
    def deadline(self) -> float:
        """When the next line becomes complete if nothing changes; infinite if no line waits."""
        return min(self._waiting[0][1] + self._patience, self._waiting[0][2] + self._longest) if self._waiting else inf


class _Growing:
    """An utterance in one language, and when its words were spoken.

    Attributes:
        caption: its newest caption.
        reading: breaks it into lines.
        count: number of its lines so far.
    """

    def __init__(self, caption: Caption, width: int) -> None:
        self.caption, self.reading, self.count = caption, Reading(width), 0
        self._shown = ""
        #: Length that the translation has reached, in cells -> the last time at which it had no more.
        self._times: dict[int, float] = {}
        self._reach(0, caption.start)

    def grown(self, caption: Caption) -> None:
        """Record the length of the translation."""
        self.caption = caption
        self._reach(cells(caption.text + caption.unstable), caption.time)

    def _reach(self, length: int, time: float | None) -> None:
        if time is not None:
            last = next(reversed(self._times), 0)
            self._times[max(length, last)] = max(time, self._times.get(last, 0.0))

    def times(self, line: str) -> tuple[float | None, float | None]:
        """Return when the words of the next line were spoken: their start and end in seconds, None if unknown."""
        before, self._shown = cells(self._shown), joined(self._shown, line)
        if not self._times:
            return None, None
        start, end = np.interp([before, cells(self._shown)], [*self._times], [*self._times.values()])
        return float(start), float(end)


class RowsWriter(Writer):
    """Converts growing captions to lines that never change (`redraft.captions.formats.rows`).

    Lines are named after their utterance: ``7.1``, ``7.2``.  Their times, also those of their subtitles, are those of
    their words, estimated from how the captions grew.  The speaker's name is in the first line of an utterance, and on
    a line of its own where the utterance goes on after a line of another speaker.

    Args:
        writer: receives the lines; closed together with this one.
        width: width of the lines in character cells.
        clock: returns the time in seconds.
        live: whether captions come while they are spoken.  How long a line has waited is then measured by the clock,
            in an event loop, so that it may be complete before the next caption comes; otherwise by the times of the
            captions, as far as they have any.
        named: whether lines have the speaker's name, for formats without a field for it.
    """

    def __init__(
        self,
        writer: Writer,
        width: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        live: bool = False,
        named: bool = True,
    ) -> None:
        self.writer: Writer = writer
        self._width, self._clock, self._live, self._named = width, clock, live, named
        self._open: dict[tuple[str, str], _Growing] = {}
        #: Speaker of the last line of each language.
        self._speakers: dict[str, str | None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None

    def write(self, event: Event) -> None:
        """Write the lines that an event completes, or time has completed before it; failures are passed on."""
        self._stop()
        if isinstance(event, Failure):
            self.writer.write(event)
        else:
            now = self._clock() if self._live or event.time is None else event.time
            self._pass(now)
            self._read(event, now)
        self._wait()

    def close(self) -> None:
        """Write the complete lines and close the writer; incomplete ones of unfinished utterances are dropped."""
        self._stop()
        self._pass(inf)
        self._open.clear()
        self.writer.close()

    def _read(self, caption: Caption, now: float) -> None:
        if self._named:
            caption = replace(caption, text=by(caption.speaker, caption.text))
        key = caption.language, caption.utterance
        if key not in self._open:
            self._pass(inf, caption.language)  # an utterance may never have a final caption
            self._open[key] = _Growing(caption, self._width)
            if len(self._open) > MOST_OPEN:
                self._open.pop(next(iter(self._open)))
        growing = self._open[key]
        growing.grown(caption)
        self._put(growing, growing.reading.read(caption, now))
        if caption.final:
            del self._open[key]

    def _pass(self, now: float, language: str | None = None) -> None:
        """Write the lines, of one language or of all, that are complete at a time."""
        for growing in self._open.values():
            if language in (None, growing.caption.language):
                self._put(growing, growing.reading.due(now))

    def _put(self, growing: _Growing, lines: Sequence[str]) -> None:
        caption = growing.caption
        for place, line in enumerate(lines, 1):
            last = caption.final and place == len(lines)
            start, ended = growing.times(line)
            if last and caption.time is not None:
                ended = max(caption.time, ended or 0.0)
            for text in (*self._name(growing), line):
                growing.count += 1
                name = f"{caption.utterance}.{growing.count}"
                # Only the last line of an utterance can be cut off.
                row = replace(caption, utterance=name, text=text, unstable="", final=True, cut=caption.cut and last)
                speaker = None if self._named else caption.speaker
                self.writer.write(replace(row, start=start, time=ended, speaker=speaker))

    def _name(self, growing: _Growing) -> list[str]:
        """Return the lines with the speaker's name before a line that goes on after one of another speaker."""
        language, speaker = growing.caption.language, growing.caption.speaker
        before = self._speakers.get(language)
        self._speakers[language] = speaker
        if not (self._named and growing.count and speaker) or before == speaker:
            return []
        return ["".join(units).strip() for units in broken(UNBREAKABLE.findall(by(speaker, " ")), self._width)]

    def _wait(self) -> None:
        """Look again when the next line becomes complete, unless a caption comes first."""
        deadline = min((growing.reading.deadline for growing in self._open.values()), default=inf)
        if self._live and deadline < inf:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, deadline - self._clock()), self._tick)

    def _stop(self) -> None:
        """Stop waiting; raises what went wrong meanwhile."""
        if self._timer is not None:
            self._timer.cancel()
        if self._error is not None:
            raise self._error

    def _tick(self) -> None:
        try:
            self._pass(self._clock())
        except Exception as error:  # raised by the next write
            self._error = error
        else:
            self._wait()
