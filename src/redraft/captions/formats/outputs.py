"""The formats in which captions are written: a new one is a `Writer`, and a row of `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

from redraft.captions.formats.write import JsonlWriter, LinesWriter, TextWriter, Writer

if TYPE_CHECKING:  # what formats need is imported when they are used
    from redraft.captions.formats.cues import Profile


@dataclass(frozen=True, slots=True)
class Output:
    """Where and how captions are written.

    Attributes:
        form: name of the format.
        out: stream of the captions.
        errors: stream of failures.
        languages: target languages.
        profile: what readers of subtitles need.
    """

    form: str
    out: IO[str]
    errors: IO[str]
    languages: Sequence[str]
    profile: Profile


def _live(to: Output) -> Writer:
    from rich.console import Console

    from redraft.captions.formats.live import LiveWriter

    console = Console(file=to.out)
    if not console.is_terminal or console.is_dumb_terminal:
        return LinesWriter(to.out, to.errors)
    return LiveWriter(to.languages, console)


def _subtitles(to: Output) -> Writer:
    from redraft.captions.formats.cues import SubtitleWriter

    return SubtitleWriter(to.out, to.errors, to.form, to.languages, to.profile)


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
