"""Write captions: the formats, and what their writers share.

If the process is killed, everything written so far is complete.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, NamedTuple

from redraft.captions.events import Caption, Event, Failure, as_object
from redraft.captions.formats.read import printable

if TYPE_CHECKING:
    from redraft.captions.formats.cues import Profile


#: Number of the newest utterances whose sources are not written again.
MOST_SPOKEN = 256


class Writer:
    """Writes events in a format, or changes them and passes them on to another writer.

    A format has `write`, and of the other methods those that it needs; `redraft.captions.formats.write` lists the
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


def put(stream: IO[str], text: str) -> None:
    """Write a text at once."""
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
            put(self._errors, failure_line(event) + "\n")
            return
        written = event.utterance, spoken(event)
        if event.final or (written[1] and written != self._last.get(event.language)):
            self._last[event.language] = written
            put(self._out, f"{'final' if event.final else 'partial'}\t{event.language}\t{written[1]}\n")


class TextWriter(Writer):
    """Writes final captions as plain text, one per line, preceded by ``de: `` if there are several languages."""

    def __init__(self, out: IO[str], languages: Sequence[str]) -> None:
        self._out, self._named = out, len(languages) > 1

    def write(self, event: Event) -> None:
        """Write a final caption; other events are ignored."""
        if isinstance(event, Caption) and event.final:
            name = f"{event.language}: " if self._named else ""
            put(self._out, f"{name}{spoken(event)}\n")


class JsonlWriter(Writer):
    """Writes one JSON object per line (`redraft.captions.events.as_object`)."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def write(self, event: Event) -> None:
        """Write the event."""
        put(self._out, json.dumps(as_object(event), ensure_ascii=False) + "\n")


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


@dataclass(frozen=True, slots=True)
class Output:
    """Where and how captions are written.

    Attributes:
        form: name of the format.
        out: stream of the captions.
        errors: stream of failures.
        languages: target languages, in the order of the lines in a cue.
        profile: what readers of subtitles need; None for that of the web.
    """

    form: str
    out: IO[str]
    errors: IO[str]
    languages: Sequence[str]
    profile: Profile | None = None


def _live(to: Output) -> Writer:
    from rich.console import Console

    from redraft.captions.formats.live import LiveWriter

    console = Console(file=to.out)
    if not console.is_terminal or console.is_dumb_terminal:
        return LinesWriter(to.out, to.errors)
    return LiveWriter(to.languages, console)


def _subtitles(to: Output) -> Writer:
    from redraft.captions.formats.cues import SubtitleWriter

    return SubtitleWriter(to)


class Format(NamedTuple):
    """A format.

    Attributes:
        made: returns a writer.
        media_type: that of a transcript in it; empty if there are none.
        title: its name for people, if there are transcripts in it.
        streams: whether commands write it while captions are made.
    """

    made: Callable[[Output], Writer]
    media_type: str = ""
    title: str = ""
    streams: bool = True


#: Name -> format, in the order in which pages offer them.
FORMATS = {
    "live": Format(_live),
    "lines": Format(lambda to: LinesWriter(to.out, to.errors)),
    "txt": Format(lambda to: TextWriter(to.out, to.languages), "text/plain", "Text", streams=False),
    "srt": Format(_subtitles, "application/x-subrip", "SRT"),
    "vtt": Format(_subtitles, "text/vtt", "VTT"),
    "jsonl": Format(lambda to: JsonlWriter(to.out), "application/jsonl", "JSONL"),
}
#: Names of those that commands write while captions are made, and of those of transcripts.
STREAMS = tuple(name for name, each in FORMATS.items() if each.streams)
TRANSCRIPTS = tuple(name for name, each in FORMATS.items() if each.media_type)


def open_writer(to: Output) -> Writer:
    """Return a writer of a format."""
    return FORMATS[to.form].made(to)
