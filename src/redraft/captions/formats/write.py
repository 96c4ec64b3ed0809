"""Write captions as lines, JSON Lines or subtitles to a text stream, flushed immediately.

If the process is killed, everything written so far is complete.
"""

from __future__ import annotations

import html
import json
import math
import sys
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import IO, Protocol

import pysubs2

from redraft.captions.events import Caption, Event, Failure, as_object
from redraft.captions.formats.cues import PROFILES, Cue, Pacer, Profile
from redraft.captions.formats.read import printable
from redraft.captions.languages import known_language

#: Reading speed in character cells per second, by which unknown times of words are estimated.
CELLS_PER_SECOND = 15
#: Latest time in SRT in seconds: 99:59:59,999.
LATEST = 359_999.999
#: Seconds by which times go back if they must have started again; speakers who interrupt each other explain fewer.
RESTART = 60.0
#: Maximum number of utterances that wait for another language.
MOST_UNPAIRED = 8
#: Number of the latest failures that are known, of updates that other languages may have.
MOST_FAILED = 64
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

    def show_to(self, audience: Audience) -> None:
        """Publish only what an audience may see."""
        if self.writer is not None:
            self.writer.show_to(audience)

    def expect_lines(self) -> None:
        """Expect the lines of reading mode, whose number is at the end of their utterance's name."""
        if self.writer is not None:
            self.writer.expect_lines()

    def end_lines(self, caption: Caption) -> None:
        """Take a final caption whose lines were written."""
        if self.writer is not None:
            self.writer.end_lines(caption)

    @property
    def names_speakers(self) -> bool:
        """Whether the format has a field for who is speaking, instead of a name before the text."""
        return self.writer is not None and self.writer.names_speakers

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

    names_speakers = True

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


class _Together:
    """Collects the captions of a cue, which has all languages.

    Whole utterances are passed on in the order in which they end, even if languages finish at different times.  Lines
    of reading mode are passed on at once: the first of each language, then the second of each.  One after another, the
    lines of the second language would come too late.

    Args:
        put: called with the captions of each cue.
        languages: all languages; one that has no caption for an utterance holds up `MOST_UNPAIRED` of them.

    Attributes:
        lines: whether captions are lines, with a number at the end of their utterance's name.
    """

    def __init__(self, put: Callable[[Sequence[Caption]], None], languages: Sequence[str]) -> None:
        self._put, self._languages, self.lines = put, languages, False
        #: Utterance -> its captions by cue, and the `seq` of the final one by language.
        self._waiting: dict[str, tuple[dict[str, list[Caption]], dict[str, int]]] = {}
        #: The latest updates that have failed: utterance, number, and language or None for all of them.
        self._failed: deque[tuple[str | None, int | None, str | None]] = deque(maxlen=MOST_FAILED)

    def add(self, caption: Caption) -> None:
        """Take a final caption or a line."""
        utterance = caption.utterance.rpartition(".")[0] if self.lines else caption.utterance
        cues, _ = self._waiting.setdefault(utterance, ({}, {}))
        cues.setdefault(caption.utterance, []).append(caption)
        self._pass_on(utterance)

    def end(self, caption: Caption) -> None:
        """Take a final caption that was added, or whose lines were."""
        self._waiting.setdefault(caption.utterance, ({}, {}))[1][caption.language] = caption.seq
        self._pass_on(caption.utterance)
        while len(self._waiting) > MOST_UNPAIRED:
            self._release(next(iter(self._waiting)))
            self._pass_on(next(iter(self._waiting)))

    def fail(self, failure: Failure) -> None:
        """Take the failure of an update, perhaps of a final one."""
        self._failed.append((failure.utterance, failure.seq, failure.language))
        name = failure.utterance
        if name in self._waiting:
            self._pass_on(name)
        told = {language for of, seq, language in self._failed if (of, seq) == (name, failure.seq)}
        # Without a final caption, only the failure of all languages shows which update was the final one.
        if name in self._waiting and not self._waiting[name][1] and (None in told or told >= {*self._languages}):
            self._release(name)

    def close(self) -> None:
        """Pass on what still waits."""
        for utterance in list(self._waiting):
            self._release(utterance)

    def _pass_on(self, utterance: str) -> None:
        """Pass on the complete cues of an utterance or, in order, of all utterances."""
        for name in [utterance] if self.lines else list(self._waiting):
            cues, ended = self._waiting[name]
            over = {language for failed, seq, language in self._failed if failed == name and seq in ended.values()}
            missing = set() if None in over else {*self._languages} - {*ended} - over
            while cues:
                first, captions = next(iter(cues.items()))
                if missing - {caption.language for caption in captions}:
                    return
                del cues[first]
                self._put(captions)
            if missing:
                return
            del self._waiting[name]

    def _release(self, utterance: str) -> None:
        for captions in self._waiting.pop(utterance)[0].values():
            self._put(captions)


class SubtitleWriter(Writer):
    """Writes SRT or WebVTT: cues from the final captions of each utterance, with the lines of all languages.

    The words of an utterance begin at the ``start`` of its captions, and end at their ``time``.  If these are the same,
    as with recognisers that send only final texts, they begin their reading time before.  If the start is unknown, the
    cue follows the previous one; if the end is unknown or before the start, it lasts for its reading time.
    `redraft.captions.formats.cues` makes cues of that.  A cue is written when the next one is known, which decides how
    long it stays.  Utterances without text have no cue.

    A time after `LATEST`, such as seconds since 1970, is reported once and treated as unknown.  A clock that starts
    again is reported, too; its cues are late.

    Args:
        form: ``srt`` or ``vtt``.
        languages: order of the lines in a cue; a language without a caption for an utterance holds up `MOST_UNPAIRED`
            utterances.
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
        self._pacer = Pacer(profile, LATEST - profile.start)
        self._together = _Together(self.write_together, self._languages)
        #: The latest time of words; infinite once it was reported that they have started again.
        self._latest = 0.0
        if form == "vtt":
            _put(out, "WEBVTT\n\n")

    def write(self, event: Event) -> None:
        """Put a final caption into a cue; failures go to the errors, and other captions are ignored."""
        if isinstance(event, Failure):
            self._report(event)
            self._together.fail(event)
            return
        if event.final:
            self._together.add(event)
            if not self._together.lines:
                self._together.end(event)

    def expect_lines(self) -> None:
        """Expect the lines of reading mode."""
        self._together.lines = self._pacer.whole = True

    def end_lines(self, caption: Caption) -> None:
        """Take a final caption whose lines were written."""
        self._together.end(caption)

    def write_together(self, captions: Sequence[Caption]) -> None:
        """Write the final captions of an utterance as the next cue."""
        by_language = {caption.language: caption for caption in captions}
        texts: dict[str, str] = {}
        for language in (*self._languages, *by_language):
            if language in by_language and (text := printable(by_language[language].text).strip()):
                texts[language] = text
        last = captions[0]
        times = (self._usable(each) for each in (*(each.start for each in captions), *(each.time for each in captions)))
        begun = next((each for each in times if each is not None), None)
        if begun is not None and begun + RESTART < self._latest < math.inf:
            found = f"time {begun:g} comes after {self._latest:g}, as if the stream had started again"
            self._report(Failure(f"{found}; its cue and others like it come late", utterance=last.utterance))
            self._latest = math.inf
        ended = self._usable(last.time)
        self._latest = max(self._latest, ended or 0.0)
        if texts:
            first = next(iter(texts))
            texts[first] = by(last.speaker, texts[first])
            self._put_cues(self._pacer.add(begun, ended, texts))

    def close(self) -> None:
        """Write the cues that still wait."""
        self._together.close()
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
            start, end = (round((time + self._start) * 1000) for time in (cue.start, cue.end))
            languages = dict.fromkeys([*self._languages, *cue.lines])
            lines = [(each, line) for each in languages for line in cue.lines.get(each, ())]
            _put(self._out, _cue(self._form, self._cues, start, end, directed(lines)))


#: Unicode's directions of letters that are written from right to left.
_LEFTWARDS = {"R", "AL"}
#: Invisible marks round a line that is written from right to left, or not; none if that is unknown.
_MARKS = {True: "\u200f", False: "\u200e", None: ""}


def directed(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a cue, which come with their languages, as players show them in the right direction.

    By default, players take that of the first letter, which may be of a name in another script, perhaps for all lines.
    So if any line has letters or a language from right to left, there are marks round all of them.
    """
    known = {language: known_language(language) for language, _ in lines}
    leftwards = {language: each.right_to_left if each else None for language, each in known.items()}
    letters = {unicodedata.bidirectional(letter) for _, line in lines for letter in line}
    if True not in leftwards.values() and letters.isdisjoint(_LEFTWARDS):
        return [line for _, line in lines]
    return [line.join([_MARKS[leftwards[language]]] * 2) for language, line in lines]


def _cue(form: str, number: int, start: int, end: int, texts: list[str]) -> str:
    """Format one cue with its number, using the library without its file header."""
    lines = [html.escape(text, quote=False) if form == "vtt" else text for text in texts]
    # The library treats a backslash as a tag or a line break; the invisible word joiner after it prevents that.
    body = r"\N".join(line.replace("\\", "\\\u2060") for line in lines)
    cues = pysubs2.SSAFile()
    cues.append(pysubs2.SSAEvent(start=start, end=end, text=body))
    _, cue = cues.to_string(form, keep_ssa_tags=True).removeprefix("WEBVTT\n\n").split("\n", 1)
    return f"{number}\n{cue}"
