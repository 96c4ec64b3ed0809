"""Write captions as lines, JSON Lines or subtitles to a text stream, flushed immediately.

Every writer has ``write(event)`` and ``close()``; ``close`` writes pending output and leaves the stream open. If the
process is killed, everything written so far is complete.
"""

from __future__ import annotations

import html
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Protocol

import pysubs2

from redraft.captions.events import Caption, Event, Failure, as_object
from redraft.captions.formats.read import printable
from redraft.captions.reading import Reading, cells
from redraft.errors import OptionError

#: Reading speed of subtitles in character cells per second: 15 Latin letters, 7 or 8 Chinese or Japanese characters.
CELLS_PER_SECOND = 15
#: Minimum duration of a cue in milliseconds.
SHORTEST = 1000
#: Latest time in SRT in milliseconds: 99:59:59,999.
LATEST = 359_999_999
SUBTITLES = ("srt", "vtt")


class Writer(Protocol):
    """The interface of all writers."""

    def write(self, event: Event) -> None:
        """Write one event, if the format supports it."""

    def close(self) -> None:
        """Write pending output; the stream stays open."""


def failure_line(failure: Failure) -> str:
    """Format a failure as one line: ``redraft: line 3, utterance 7, de: what is wrong``, with the known parts."""
    place = [f"line {failure.line}"] if failure.line is not None else []
    place += [f"utterance {failure.utterance}"] if failure.utterance is not None else []
    place += [failure.language] if failure.language is not None else []
    return printable(": ".join(["redraft", *([", ".join(place)] if place else []), failure.message]))


def spoken(caption: Caption) -> str:
    """Return the text of a caption as one line, after the speaker's name if that is known."""
    return by(caption.speaker, printable(caption.text).strip())


def by(speaker: str | None, text: str) -> str:
    """Return a text after its speaker's name if that is known; an empty text has none."""
    return f"{printable(speaker)}: {text}" if speaker and text else text


def _put(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if stream is sys.stdout:
            error.filename = "standard output"  # missing in the system's error
        raise


class LinesWriter:
    """Writes one caption per line with three tab-separated fields: ``final`` or ``partial``, language, text.

    Final captions are always written, partial ones only if their text has changed.  Texts contain no tabs.

    Args:
        out: where to write captions.
        errors: where to write failures.
    """

    def __init__(self, out: IO[str], errors: IO[str]) -> None:
        self._out, self._errors = out, errors
        self._last: dict[str, tuple[str, str]] = {}

    def write(self, event: Event, column: str | None = None) -> None:
        """Write a caption for ``column`` (by default, its language); failures go to the errors."""
        if isinstance(event, Failure):
            _put(self._errors, failure_line(event) + "\n")
            return
        column = event.language if column is None else column
        written = event.utterance, spoken(event)
        if event.final or (written[1] and written != self._last.get(column)):
            self._last[column] = written
            _put(self._out, f"{'final' if event.final else 'partial'}\t{column}\t{written[1]}\n")

    def close(self) -> None:
        """Do nothing: there is no pending output."""


class TextWriter:
    """Writes final captions as plain text, one per line, preceded by ``de: `` if there are several languages.

    Args:
        out: where to write captions.
        languages: the target languages.
    """

    def __init__(self, out: IO[str], languages: Sequence[str]) -> None:
        self._out, self._named = out, len(languages) > 1

    def write(self, event: Event) -> None:
        """Write a final caption; other events are ignored."""
        if isinstance(event, Caption) and event.final:
            name = f"{event.language}: " if self._named else ""
            _put(self._out, f"{name}{spoken(event)}\n")

    def close(self) -> None:
        """Do nothing: there is no pending output."""


class JsonlWriter:
    """Writes one JSON object per line (`redraft.captions.events.as_object`)."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def write(self, event: Event) -> None:
        """Write the event."""
        _put(self._out, json.dumps(as_object(event), ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Do nothing: there is no pending output."""


class SubtitleWriter:
    """Writes SRT or WebVTT: one cue per utterance, from its final captions, with a line per language.

    A cue starts at the time of the utterance's first update (`begin`, or its first caption) and ends at that of the
    final one.  A cue with an unknown start follows the previous one; if either time is unknown, it lasts for its
    reading time, at `CELLS_PER_SECOND`.  No cue is shorter than a second, starts before the previous one has ended, or
    ends after `LATEST`.  Utterances without text have no cue.

    A time after `LATEST`, such as seconds since 1970, is reported once and treated as unknown.  A cue that must be
    moved because times run backwards is reported.

    Args:
        out: where to write cues.
        errors: where to write failures.
        form: ``srt`` or ``vtt``.
        languages: order of the lines in a cue; a cue is written once it is complete, or when the next utterance ends.

    Attributes:
        complained: whether an unusable time was reported.

    Raises:
        OptionError: ``form`` is unknown.
    """

    def __init__(self, out: IO[str], errors: IO[str], form: str, languages: Sequence[str]) -> None:
        if form not in SUBTITLES:
            raise OptionError(f"subtitle format must be one of {', '.join(SUBTITLES)}, not {form!r}")
        self._out, self._errors, self._form, self._languages = out, errors, form, tuple(languages)
        self._begun: dict[str, int] = {}
        self._held: dict[str, Caption] = {}
        self._clock = self._cues = self._latest = 0
        self.complained = self._warned = False
        if form == "vtt":
            _put(out, "WEBVTT\n\n")

    def write(self, event: Event) -> None:
        """Record a caption's time and, if it is final, its text; failures go to the errors."""
        if isinstance(event, Failure):
            _put(self._errors, failure_line(event) + "\n")
            return
        self.begin(event.utterance, event.time)
        if not event.final:
            return
        if any(held.utterance != event.utterance for held in self._held.values()):
            self._write_cue()
        self._held[event.language] = event
        if self._held.keys() >= set(self._languages):
            self._write_cue()

    def begin(self, utterance: str, time: float | None) -> None:
        """Record the start of an utterance in seconds, in case its first updates get no caption."""
        when = self._milliseconds(time)
        if when is not None:
            self._begun.setdefault(utterance, when)

    def close(self) -> None:
        """Write the cue that still waits for a language."""
        self._write_cue()

    def _milliseconds(self, time: float | None) -> int | None:
        if time is None or 0 <= time <= LATEST / 1000:
            return None if time is None else round(time * 1000)
        if not self._warned:
            self._warned = True
            hours = f"time must be seconds from the start of the stream, under 100 hours, not {time:g}"
            self._complain(Failure(f"{hours}; such cues get an estimate"))
        return None

    def _complain(self, failure: Failure) -> None:
        self.complained = True
        _put(self._errors, failure_line(failure) + "\n")

    def _check_order(self, utterance: str, begun: int | None, ended: int) -> None:
        """Report times (in milliseconds) that run backwards."""
        if begun is not None and ended < begun:
            found = f"that of its first one, {begun / 1000:g} s; its cue gets an estimate"
        elif ended < self._latest:
            found = f"the end of an earlier cue, {self._latest / 1000:g} s; its cue comes after that"
        else:
            self._latest = ended
            return
        message = f"the time of the final update, {ended / 1000:g} s, is before {found}"
        self._complain(Failure(message, utterance=utterance))

    def _write_cue(self) -> None:
        held, self._held = self._held, {}
        if not held:
            return
        order = [*self._languages, *(language for language in held if language not in self._languages)]
        texts = [printable(held[language].text).strip() for language in order if language in held]
        texts = [text for text in texts if text]
        utterance = next(iter(held.values()))
        begun = self._begun.pop(utterance.utterance, None)
        if texts:
            texts[0] = by(utterance.speaker, texts[0])
            self._cues += 1
            ended = self._milliseconds(utterance.time)
            if ended is not None:
                self._check_order(utterance.utterance, begun, ended)
            start, end = self._span(begun, ended, texts)
            _put(self._out, _cue(self._form, self._cues, start, end, texts))
            self._clock = end

    def _span(self, begun: int | None, ended: int | None, texts: list[str]) -> tuple[int, int]:
        """Return start and end of a cue in milliseconds."""
        start = self._clock if begun is None else max(begun, self._clock)
        estimate = start + max(map(_reading_time, texts))
        end = estimate if begun is None or ended is None or ended <= begun else ended
        end = min(max(end, start + SHORTEST), LATEST)
        return min(start, end), end


def _reading_time(text: str) -> int:
    """Return the reading time of a text in milliseconds; wide characters count as two cells."""
    return cells(text) * 1000 // CELLS_PER_SECOND


def _cue(form: str, number: int, start: int, end: int, texts: list[str]) -> str:
    """Format one cue with its number, using the library without its file header."""
    lines = [html.escape(text, quote=False) if form == "vtt" else text for text in texts]
    # The library treats a backslash as a tag or a line break; the invisible word joiner after it prevents that.
    body = r"\N".join(line.replace("\\", "\\\u2060") for line in lines)
    cues = pysubs2.SSAFile()
    cues.append(pysubs2.SSAEvent(start=start, end=end, text=body))
    _, cue = cues.to_string(form, keep_ssa_tags=True).removeprefix("WEBVTT\n\n").split("\n", 1)
    return f"{number}\n{cue}"


class RowsWriter:
    """Converts growing captions to lines that never change (`redraft.captions.reading`).

    Lines are named after their utterance: ``7.1``, ``7.2``.

    Args:
        writer: receives the lines; closed together with this one.
        width: width of the lines in character cells.
        clock: returns the time in seconds.

    Raises:
        OptionError: the width is out of range.
    """

    def __init__(self, writer: Writer, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.writer, self._clock = writer, clock
        Reading(width)  # checks the width before the first caption
        self._languages: defaultdict[str, Reading] = defaultdict(lambda: Reading(width))
        self._counts: defaultdict[tuple[str, str], int] = defaultdict(int)

    def write(self, event: Event) -> None:
        """Write the lines that an event completes; failures are passed on."""
        if isinstance(event, Failure):
            self.writer.write(event)
            return
        key = event.utterance, event.language
        # Only the last line of an utterance can be cut off.
        cut = event.cut and event.final
        for line in self._languages[event.language].read(event, self._clock()):
            self._counts[key] += 1
            name = f"{event.utterance}.{self._counts[key]}"
            self.writer.write(replace(event, utterance=name, text=line, unstable="", final=True, cut=cut))
        if event.final:
            self._counts.pop(key, None)

    def close(self) -> None:
        """Close the writer; incomplete lines of unfinished utterances are dropped."""
        self.writer.close()
