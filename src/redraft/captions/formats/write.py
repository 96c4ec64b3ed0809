"""Write captions as lines, JSON Lines or subtitles to a text stream, flushed immediately.

If the process is killed, everything written so far is complete.
"""

from __future__ import annotations

import html
import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import IO, Protocol

from pysubs2.time import ms_to_times

from redraft.captions.events import Caption, Event, Failure, as_object
from redraft.captions.formats.cues import PROFILES, Cue, Pacer, Profile
from redraft.captions.formats.read import printable
from redraft.captions.languages import known_language

#: Latest time in SRT in seconds: 99:59:59,999.
LATEST = 359_999.999
#: Maximum number of utterances that wait for another language.
MOST_UNPAIRED = 8
#: Number of the newest utterances whose sources are not written again.
MOST_SPOKEN = 256


class Audience(Protocol):
    """What the audience may see, for example `redraft.client.ledger.Control`."""

    @property
    def paused(self) -> bool:
        """Whether captions are held back."""

    def is_hidden(self, utterance: str, language: str) -> bool:
        """Whether a caption must not be shown."""


class Writer:
    """Writes events in a format, or changes them and passes them on to another writer.

    A format has `write`, and of the other methods those that it needs; `redraft.captions.formats.outputs` lists the
    formats.

    Attributes:
        writer: the writer that events are passed on to; None for a format.
    """

    writer: Writer | None = None

    def write(self, event: Event) -> None:
        """Write one event, if the format supports it."""

    def write_together(self, captions: Sequence[Caption]) -> None:
        """Write the final captions of an utterance, whether or not other languages follow."""
        for caption in captions:
            self.write(caption)

    def close(self) -> None:
        """Write pending output, if there is any; the stream stays open."""
        if self.writer is not None:
            self.writer.close()

    def drop(self) -> None:
        """Write nothing more that takes time, since the program is being interrupted."""
        if self.writer is not None:
            self.writer.drop()

    def show_to(self, audience: Audience, *, lines: bool = False) -> None:
        """Publish only what an audience may see; ``lines`` of reading mode are hidden together with their utterance."""
        if self.writer is not None:
            self.writer.show_to(audience, lines=lines)

    @property
    def whole(self) -> bool:
        """Whether everything was written as it is; subtitles, for example, cannot represent some times."""
        return self.writer is None or self.writer.whole


def failure_line(failure: Failure) -> str:
    """Format a failure as one line: ``redraft: line 3, utterance 7, de: what is wrong``, with the known parts."""
    parts = ("line ", failure.line), ("utterance ", failure.utterance), ("", failure.language)
    place = ", ".join(f"{kind}{name}" for kind, name in parts if name is not None)
    return printable(": ".join(["redraft", *([place] if place else []), failure.message]))


def spoken(caption: Caption) -> str:
    """Return the text of a caption as one line, after the speaker's name if that is known."""
    return by(caption.speaker, printable(caption.text).strip())


def by(speaker: str | None, text: str) -> str:
    """Return a text after its speaker's name if that is known; an empty text stays empty."""
    return f"{printable(speaker)}: {text}" if speaker and text else text


def _put(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if stream is sys.stdout:
            error.filename = "standard output"  # missing in the system's error
        raise


class LinesWriter(Writer):
    """Writes one caption per line with three tab-separated fields: ``final`` or ``partial``, language, text.

    Final captions are always written, partial ones only if their text has changed.  Texts contain no tabs.
    """

    def __init__(self, out: IO[str], errors: IO[str]) -> None:
        self._out, self._errors = out, errors
        self._last: dict[str, tuple[str, str]] = {}

    def write(self, event: Event) -> None:
        """Write a caption; failures go to the errors."""
        if isinstance(event, Failure):
            _put(self._errors, failure_line(event) + "\n")
            return
        written = event.utterance, spoken(event)
        if event.final or (written[1] and written != self._last.get(event.language)):
            self._last[event.language] = written
            _put(self._out, f"{'final' if event.final else 'partial'}\t{event.language}\t{written[1]}\n")


class TextWriter(Writer):
    """Writes final captions as plain text, one per line, preceded by ``de: `` if there are several languages."""

    def __init__(self, out: IO[str], languages: Sequence[str]) -> None:
        self._out, self._named = out, len(languages) > 1

    def write(self, event: Event) -> None:
        """Write a final caption; other events are ignored."""
        if isinstance(event, Caption) and event.final:
            name = f"{event.language}: " if self._named else ""
            _put(self._out, f"{name}{spoken(event)}\n")


class JsonlWriter(Writer):
    """Writes one JSON object per line (`redraft.captions.events.as_object`)."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def write(self, event: Event) -> None:
        """Write the event."""
        _put(self._out, json.dumps(as_object(event), ensure_ascii=False) + "\n")


class SpokenWriter(Writer):
    """Adds what was spoken to the captions, as captions in its language: each new source, before its translations."""

    def __init__(self, writer: Writer, language: str) -> None:
        self.writer: Writer = writer
        self._language = language
        #: Utterance -> whether its newest source was final, and its `seq`.
        self._newest: dict[str, tuple[bool, int]] = {}

    def write(self, event: Event) -> None:
        """Write what is new in the source of a caption, then the event."""
        if isinstance(event, Caption) and event.source:
            newest = event.final, event.seq
            if newest > self._newest.get(event.utterance, (False, -1)):
                self._newest[event.utterance] = newest
                text, language = event.source, self._language
                self.writer.write(replace(event, language=language, text=text, unstable="", source="", cut=False))
            while len(self._newest) > MOST_SPOKEN:
                del self._newest[next(iter(self._newest))]
        self.writer.write(event)


class SubtitleWriter(Writer):
    """Writes SRT or WebVTT: cues from the final captions of each utterance, with the lines of all languages.

    The words of an utterance begin at the ``start`` of its captions, and end at their ``time``.  If these are the same,
    as with recognisers that send only final texts, they begin their reading time before.  If the start is unknown, the
    cue follows the previous one; if the end is unknown or before the start, it lasts for its reading time.
    `redraft.captions.formats.cues` makes cues of that.  A cue is written when the next one is known, which decides how
    long it stays.  Utterances without text have no cue.

    Cues are in the order of the first final captions.  A language that has none for an utterance, because it failed for
    example, holds up `MOST_UNPAIRED` utterances; in reading mode, so many lines.

    A time after `LATEST`, such as seconds since 1970, is reported once and treated as unknown.

    Args:
        form: ``srt`` or ``vtt``.
        languages: order of the lines in a cue.
        profile: what readers need.
    """

    #: Whether all times were usable.
    whole = True

    def __init__(
        self,
        out: IO[str],
        errors: IO[str],
        form: str,
        languages: Sequence[str],
        profile: Profile = PROFILES["web"],
    ) -> None:
        self._out, self._errors, self._form, self._languages = out, errors, form, tuple(languages)
        self._start, self._cues = profile.start, 0
        self._pacer = Pacer(profile)
        #: Utterance -> its final captions by language.
        self._waiting: dict[str, dict[str, Caption]] = {}
        if form == "vtt":
            _put(out, "WEBVTT\n\n")

    def write(self, event: Event) -> None:
        """Put a final caption into a cue; failures go to the errors, and other captions are ignored."""
        if isinstance(event, Failure):
            self._report(event)
        elif event.final:
            self._waiting.setdefault(event.utterance, {})[event.language] = event
            while self._waiting:
                utterance, captions = next(iter(self._waiting.items()))
                if len(self._waiting) <= MOST_UNPAIRED and not captions.keys() >= {*self._languages}:
                    break
                del self._waiting[utterance]
                self.write_together([*captions.values()])

    def write_together(self, captions: Sequence[Caption]) -> None:
        """Write the final captions of an utterance as the next cue."""
        ordered = sorted(captions, key=lambda caption: self._languages.index(caption.language))
        texts = {each.language: text for each in ordered if (text := printable(each.text).strip())}
        last = captions[0]
        begun, ended = self._usable(last.start), self._usable(last.time)
        if texts:
            first = next(iter(texts))
            texts[first] = by(last.speaker, texts[first])
            self._put_cues(self._pacer.add(ended if begun is None else begun, ended, texts))

    def close(self) -> None:
        """Write the cues that still wait."""
        for captions in self._waiting.values():
            self.write_together([*captions.values()])
        self._waiting.clear()
        self._put_cues(self._pacer.close())

    def _usable(self, time: float | None) -> float | None:
        """Return a time of the stream if it is one."""
        if time is None or 0 <= time <= LATEST - self._start:
            return time
        if self.whole:
            self.whole = False
            hours = f"time must be seconds from the start of the stream, under 100 hours, not {time:g}"
            self._report(Failure(f"{hours}; such cues get an estimate"))
        return None

    def _report(self, failure: Failure) -> None:
        _put(self._errors, failure_line(failure) + "\n")

    def _put_cues(self, cues: Iterable[Cue]) -> None:
        for cue in cues:
            self._cues += 1
            lines = directed([(each, line) for each in self._languages for line in cue.lines.get(each, ())])
            times = f"{self._clock(cue.start)} --> {self._clock(cue.end)}"
            if self._form == "vtt":
                times, lines = times.replace(",", "."), [html.escape(line, quote=False) for line in lines]
            _put(self._out, "\n".join([str(self._cues), times, *lines, "", ""]))

    def _clock(self, time: float) -> str:
        hours, minutes, seconds, rest = ms_to_times(round((time + self._start) * 1000))
        return f"{hours:02}:{minutes:02}:{seconds:02},{rest:03}"


#: Invisible marks round a line that is written from right to left, or not; none if that is unknown.
_MARKS = {True: "\u200f", False: "\u200e", None: ""}


def directed(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a cue, which come with their languages, as players show them in the right direction.

    By default, players take that of the first letter, which may be of a name in another script, perhaps for all lines.
    So if any line has letters or a language from right to left, there are marks round all of them.
    """
    texts = [line for _, line in lines]
    leftwards = [known.right_to_left if (known := known_language(language)) else None for language, _ in lines]
    if True not in leftwards and not any(unicodedata.bidirectional(each) in ("R", "AL") for each in "".join(texts)):
        return texts
    return [text.join([_MARKS[each]] * 2) for each, text in zip(leftwards, texts, strict=True)]
