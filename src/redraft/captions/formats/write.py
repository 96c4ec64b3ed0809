"""Write captions as lines, JSON Lines or subtitles to a text stream, flushed immediately.

Every writer has ``write(event)`` and ``close()``; ``close`` writes pending output and leaves the stream open. If the
process is killed, everything written so far is complete.
"""

from __future__ import annotations

import html
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol

import pysubs2

from redraft.captions.breaks import cells
from redraft.captions.events import Caption, Event, Failure, as_object
from redraft.captions.formats.read import printable
from redraft.errors import OptionError

#: Reading speed of subtitles in character cells per second: 15 Latin letters, 7 or 8 Chinese or Japanese characters.
CELLS_PER_SECOND = 15
#: Minimum duration of a cue in milliseconds.
SHORTEST = 1000
#: Milliseconds by which the times of words may go back; more is a clock that has started again.
LATE = 4000
#: Maximum lines of each language in a cue, and character cells of a line.
MOST_LINES, LINE = 2, 42
#: Latest time in SRT in milliseconds: 99:59:59,999.
LATEST = 359_999_999
#: Delay in milliseconds from which on the times of a stream have started again.
RESTART = 60_000
SUBTITLES = ("srt", "vtt")
#: Maximum number of utterances that wait for another language.
MOST_UNPAIRED = 8


class Writer(Protocol):
    """The interface of all writers."""

    def write(self, event: Event) -> None:
        """Write one event, if the format supports it."""

    def close(self) -> None:
        """Write pending output; the stream stays open."""


def layers(writer: Writer | None) -> Iterator[Writer]:
    """Yield a writer, the one that it passes events on to (its attribute ``writer``), and so on."""
    while writer is not None:
        yield writer
        writer = getattr(writer, "writer", None)


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
    """Writes final captions as plain text, one per line, preceded by ``de: `` if there are several languages."""

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


class Ends:
    """Which languages have nothing more for an utterance.

    These are those with a final caption, and those whose final update failed, which is the one that other languages
    have answered with a final caption.
    """

    def __init__(self) -> None:
        self._finals: set[str] = set()
        self._seq: int | None = None
        self._failed: set[tuple[str | None, int | None]] = set()

    def note(self, event: Event) -> None:
        """Record a final caption or a failure."""
        if isinstance(event, Failure):
            self._failed.add((event.language, event.seq))
        else:
            self._seq = event.seq
            self._finals.add(event.language)

    def missing(self, languages: Sequence[str]) -> set[str]:
        """Return the languages that may have more."""
        left = {*languages} - self._finals
        if self._seq is not None:
            return self._unfailed(left, self._seq)
        # Without a final caption, only the failure of all languages shows which update was the final one.
        over = any(not self._unfailed(left, seq) for _, seq in self._failed)
        return set() if over else left

    def _unfailed(self, languages: set[str], seq: int | None) -> set[str]:
        """Return those of the languages in which an update has not failed."""
        return {each for each in languages if self._failed.isdisjoint({(each, seq), (None, seq)})}


@dataclass(slots=True)
class _Unpaired:
    """Lines of an utterance that wait for those of other languages.

    Attributes:
        lines: by number, starting at 1.
        written: number of those that were written.
        ends: which languages have no more lines.
    """

    lines: dict[int, list[Caption]] = field(default_factory=dict)
    written: int = 0
    ends: Ends = field(default_factory=Ends)


class _Pairs:
    """Passes on the lines of several languages together: the first of each language, then the second of each.

    A cue of subtitles has all languages.  One after another, the lines of the second language would come too late.

    Args:
        languages: all languages; a language that has no line for an utterance holds up `MOST_UNPAIRED` of them.
    """

    def __init__(self, write: Callable[[Caption], None], languages: Sequence[str]) -> None:
        self._write, self._languages = write, languages
        self._waiting: dict[str, _Unpaired] = {}

    def add(self, line: Caption) -> None:
        """Take a line, named after its utterance."""
        utterance, _, number = line.utterance.rpartition(".")
        waiting = self._waiting.setdefault(utterance, _Unpaired())
        waiting.lines.setdefault(int(number), []).append(line)
        self._pass_on(utterance)

    def note(self, event: Event) -> None:
        """Take a final caption, after its lines, or the failure of an update."""
        if (utterance := event.utterance) is None:
            return
        self._waiting.setdefault(utterance, _Unpaired()).ends.note(event)
        self._pass_on(utterance)
        while len(self._waiting) > MOST_UNPAIRED:
            self._release(next(iter(self._waiting)))

    def close(self) -> None:
        """Write what still waits."""
        for utterance in list(self._waiting):
            self._release(utterance)

    def _pass_on(self, utterance: str) -> None:
        waiting = self._waiting[utterance]
        while lines := waiting.lines.get(waiting.written + 1):
            if waiting.ends.missing(self._languages) - {line.language for line in lines}:
                return
            waiting.written += 1
            for line in waiting.lines.pop(waiting.written):
                self._write(line)
        if not (waiting.lines or waiting.ends.missing(self._languages)):
            del self._waiting[utterance]

    def _release(self, utterance: str) -> None:
        for lines in self._waiting.pop(utterance).lines.values():
            for line in lines:
                self._write(line)


@dataclass(slots=True)
class _Cue:
    """A cue.

    Attributes:
        start: its start in milliseconds.
        ended: when its words ended, as ``start``.
        texts: language -> its lines.
    """

    start: int
    ended: int
    texts: dict[str, list[str]]

    @property
    def read(self) -> int:
        """When it has been read, as ``start``."""
        return self.start + max(SHORTEST, *(sum(map(_reading_time, lines)) for lines in self.texts.values()))


class SubtitleWriter:
    """Writes SRT or WebVTT: one cue per utterance, from its final captions, with a line per language.

    A cue starts at the time of the utterance's first update (`begin`, or its first caption) and ends at that of the
    final one.  If these are the same, as with recognisers that send finals only, the words were spoken before it, as
    far as its reading time goes back, at `CELLS_PER_SECOND`.  A cue with an unknown start follows the previous one; if
    the end is unknown or before the start, it lasts for its reading time.

    No cue starts before the previous one has ended, or ends after `LATEST`, whatever the times are.  A cue lasts a
    second at least, so that one after another may come late, as those of two speakers.  A late cue waits for the next
    one: if that starts before it has lasted a second, they become one cue of two lines; if there is time, it lasts
    until it has been read.  Utterances without text have no cue.

    A time after `LATEST`, such as seconds since 1970, is reported once and treated as unknown.  A clock that starts
    again is reported, too; its cues come late.

    Args:
        form: ``srt`` or ``vtt``.
        languages: order of the lines in a cue; a cue is written once it is complete, or when the next utterance ends.

    Attributes:
        complained: whether an unusable time was reported.

    Raises:
        OptionError: ``form`` is unknown.
    """

    def __init__(self, out: IO[str], errors: IO[str], form: str, languages: Sequence[str]) -> None:
        if form not in SUBTITLES:
            raise OptionError(f"must be one of {', '.join(SUBTITLES)}, not {form!r}", "subtitle format")
        self._out, self._errors, self._form, self._languages = out, errors, form, tuple(languages)
        self._begun: dict[str, int] = {}
        self._held: dict[str, Caption] = {}
        self._clock = self._cues = self._latest = 0
        #: A cue that is late.
        self._waiting: _Cue | None = None
        self._pairs: _Pairs | None = None
        self.complained = self._warned = self._restarted = False
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
        if self._pairs is None:
            self._take(event)
        else:
            self._pairs.add(event)

    def _take(self, event: Caption) -> None:
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

    def pair_lines(self) -> None:
        """Expect the lines of reading mode, whose number is at the end of their utterance's name."""
        self._pairs = _Pairs(self._take, self._languages)

    def note(self, event: Event) -> None:
        """With `pair_lines`, take a final caption, after its lines, or the failure of an update."""
        if self._pairs is not None:
            self._pairs.note(event)

    def close(self) -> None:
        """Write the cues that still wait."""
        if self._pairs is not None:
            self._pairs.close()
        self._write_cue()
        self._release(None)

    def _milliseconds(self, time: float | None) -> int | None:
        if time is None:
            return None
        if 0 <= time <= LATEST / 1000:
            return round(time * 1000)
        if not self._warned:
            self._warned = True
            hours = f"time must be seconds from the start of the stream, under 100 hours, not {time:g}"
            self._complain(Failure(f"{hours}; such cues get an estimate"))
        return None

    def _complain(self, failure: Failure) -> None:
        self.complained = True
        _put(self._errors, failure_line(failure) + "\n")

    def _check_clock(self, utterance: str, begun: int | None, start: int) -> None:
        """Report the first cue that comes too late for speakers at the same time."""
        if begun is not None and start - begun > RESTART and not self._restarted:
            self._restarted = True
            found = f"time {begun / 1000:g} comes after {start / 1000:g}, as if the stream had started again"
            message = f"{found}; its cue and others like it come late"
            _put(self._errors, failure_line(Failure(message, utterance=utterance)) + "\n")

    def _write_cue(self) -> None:
        held, self._held = self._held, {}
        if not held:
            return
        order = [*self._languages, *(language for language in held if language not in self._languages)]
        found = {language: printable(held[language].text).strip() for language in order if language in held}
        texts = {language: text for language, text in found.items() if text}
        last = next(iter(held.values()))
        begun = self._begun.pop(last.utterance, None)
        if texts:
            first = next(iter(texts))
            texts[first] = by(last.speaker, texts[first])
            self._add(last.utterance, begun, self._milliseconds(last.time), texts)

    def _add(self, utterance: str, begun: int | None, ended: int | None, texts: dict[str, str]) -> None:
        """Add texts, given the times of their words in milliseconds."""
        lasts = max(map(_reading_time, texts.values()))
        free = self._clock if self._waiting is None else self._waiting.start + SHORTEST
        if begun is not None and begun == ended and self._latest < ended:
            begun = max(ended - max(SHORTEST, lasts), min(free, ended), 0)
        in_order = ended is None or ended + LATE >= self._latest  # the times of lines are estimates
        self._latest = max(ended or 0, self._latest)
        if self._waiting is not None and in_order and begun is not None and begun < free and self._has_room(texts):
            for language, text in texts.items():
                self._waiting.texts.setdefault(language, []).append(text)
            self._waiting.ended = max(self._waiting.ended, ended or 0)
            return
        self._release(begun)
        start = self._clock if begun is None else max(begun, self._clock)
        late = 0 if begun is None else start - begun
        self._check_clock(utterance, begun, start)
        if begun is None or ended is None or ended <= begun:
            ended = start - late + lasts
        cue = _Cue(start, ended, {language: [text] for language, text in texts.items()})
        if late and in_order:
            self._waiting = cue
        else:
            self._put_cue(cue, max(ended, start + SHORTEST))

    def _has_room(self, texts: dict[str, str]) -> bool:
        """Whether the cue that waits has room for more texts."""

        def lines(text: str) -> int:
            return 1 if self._pairs is not None else -(-cells(text) // LINE)

        known = {} if self._waiting is None else self._waiting.texts
        return all(sum(map(lines, [*known.get(each, ()), text])) <= MOST_LINES for each, text in texts.items())

    def _release(self, begun: int | None) -> None:
        """Write the cue that waits, given when the words of the next one begin."""
        if (cue := self._waiting) is not None:
            self._waiting = None
            until = cue.read if begun is None else min(cue.read, begun)
            self._put_cue(cue, max(cue.ended, cue.start + SHORTEST, until))

    def _put_cue(self, cue: _Cue, end: int) -> None:
        self._cues, self._clock = self._cues + 1, min(end, LATEST)
        texts = [line for lines in cue.texts.values() for line in lines]
        _put(self._out, _cue(self._form, self._cues, min(cue.start, self._clock), self._clock, texts))


class InOrder:
    """Passes final captions to a subtitle writer in order of utterances, even if languages finish at different times.

    Args:
        writer: the subtitle writer, which is closed together with this one.
        languages: the languages of an utterance's captions.
    """

    def __init__(self, writer: SubtitleWriter, languages: Sequence[str]) -> None:
        self.writer, self._languages = writer, tuple(languages)
        self._held: dict[str, tuple[list[Caption], Ends]] = {}

    def write(self, event: Event) -> None:
        """Write an event; a final caption waits for its turn."""
        if isinstance(event, Failure) or not event.final:
            self.writer.write(event)
        if event.utterance is None or (isinstance(event, Caption) and not event.final):
            return
        captions, ends = self._held.setdefault(event.utterance, ([], Ends()))
        ends.note(event)
        if isinstance(event, Caption):
            captions.append(event)
        while self._held:
            _, first = next(iter(self._held.values()))
            if first.missing(self._languages) and len(self._held) <= MOST_UNPAIRED:
                return
            self._release()

    def close(self) -> None:
        """Write everything that still waits."""
        while self._held:
            self._release()
        self.writer.close()

    def _release(self) -> None:
        captions, _ = self._held.pop(next(iter(self._held)))
        for caption in captions:
            self.writer.write(caption)


#: Invisible marks that set the direction of a line: from left to right, and from right to left.
_MARKS = {False: "\u200e", True: "\u200f"}
#: Unicode's directions of letters, and whether they are written from right to left.
_DIRECTIONS = {"L": False, "R": True, "AL": True}


def directed(text: str) -> str:
    """Return a line that players show in the direction of most of its letters.

    They show it in that of its first letter, which may be of a name in another script.
    """
    letters = [_DIRECTIONS[found] for each in text if (found := unicodedata.bidirectional(each)) in _DIRECTIONS]
    most = 2 * sum(letters) > len(letters)
    return _MARKS[most] + text if letters and letters[0] != most and text[0] not in _MARKS.values() else text


def _reading_time(text: str) -> int:
    """Return the reading time of a text in milliseconds."""
    return cells(text) * 1000 // CELLS_PER_SECOND


def _cue(form: str, number: int, start: int, end: int, texts: list[str]) -> str:
    """Format one cue with its number, using the library without its file header."""
    lines = [html.escape(text, quote=False) if form == "vtt" else text for text in map(directed, texts)]
    # The library treats a backslash as a tag or a line break; the invisible word joiner after it prevents that.
    body = r"\N".join(line.replace("\\", "\\\u2060") for line in lines)
    cues = pysubs2.SSAFile()
    cues.append(pysubs2.SSAEvent(start=start, end=end, text=body))
    _, cue = cues.to_string(form, keep_ssa_tags=True).removeprefix("WEBVTT\n\n").split("\n", 1)
    return f"{number}\n{cue}"
