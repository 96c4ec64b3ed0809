"""Inputs and outputs of commands that make captions, and the other formats that are refused as inputs."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, cast

from redraft.captions.formats.cues import PROFILES, Profile
from redraft.captions.formats.push import Audience, CaptionService, PushWriter
from redraft.captions.formats.read import (
    Item,
    not_empty,
    paced,
    read_jsonl,
    read_lines,
    read_simulstreaming,
    read_text,
)
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.write import Output, SpokenWriter, Writer, open_writer
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.options import is_file
from redraft.errors import InputError
from redraft.speech.audio import container


class Other(NamedTuple):
    """A format that is refused.

    Attributes:
        what: what it is.
        remedy: what to do.
        pattern: how the input, or one of its first lines, begins, each byte a character.
        example: such a beginning, for the documentation and its test.
        reads: inputs that are not refused although they match.
    """

    what: str
    remedy: str
    pattern: str
    example: str
    reads: tuple[str, ...] = ()


_LISTEN = "`redraft listen FILE` translates speech in WAV, FLAC, MP3 and Ogg"
#: A time next to an arrow, which says that it is one.
_TIME = r"(?:(?:\d+:)?\d{1,2}:\d\d(?:[.,:;]\d{1,3})?|\d+\.\d+ ?s?)"
_SPAN = rf"{_TIME}\s*--?>\s*{_TIME}"
#: A line with a name and a time, or only a time.
_NAMED = r"(?:\[[^\]\n]+\] )?(?:\d+:)?\d{1,2}:\d\d[ \t]*\r?\n"
#: How subtitles, lyrics and transcripts with times begin.
_TIMED = (
    r"WEBVTT\b",
    rf"\[?{_SPAN}",
    r"\[Script Info\]|(?:Dialogue|Comment): \d",
    r"\d+:\d\d:\d\d[.,](?:\d{1,3}\s*,|\d{3}\s+\S)",
    r"\{\d+\}\{\d*\}",
    r"\[\d+:\d\d[.:]\d+\]|\[(?:ti|ar|al|by|offset|length|re|ve):",
    r"### Transcription \d+ START",
    r"start([\t,])end\1(?:speaker\1)?text\s*\n",
    rf"{_NAMED}[^\n]+\n+{_NAMED}",
    r"\d+\.\d{4} \d+ \d+ +\S",
)

#: The first one that matches counts.
OTHERS = (
    Other(
        "a document, binary data or text in another encoding",
        f"save it as plain text in UTF-8; {_LISTEN}",
        r"[^\n]*\0|\xff\xfe|\xfe\xff|%PDF-|PK\x03\x04|\{\\rtf|\x1f\x8b",
        "%PDF-1.7",
    ),
    Other(
        "escape sequences of a program that redraws its screen",
        "have it write a line for each update instead, as a `transcription_callback` of WhisperLive can",
        r"[^\n]*(?-i:\x1b(?:\[[\d;?]*[A-HJLMSTdfsu]|\[\?(?:47|1047|1049)h|[78cDM])|\x08)",
        "\x1b[H\x1b[2JGood",
        ("jsonl", "simulstreaming"),
    ),
    Other(
        "XML or HTML",
        "write only its texts",
        r"<\?xml|<!doctype|<html|<tt\b|<transcript|<sami\b",
        '<?xml version="1.0"?>',
    ),
    Other(
        "text with times",
        "write only its texts, as Whisper does with `--output_format txt` and whisper.cpp with `--no-timestamps`",
        "|".join(_TIMED),
        "1\n00:00:01,000 --> 00:00:02,500\nHi",
    ),
    Other(
        "JSON",
        "read it with --input jsonl or simulstreaming, or from a server, with --input vosk:ws://HOST:2700 for example; "
        "of other programs, write only the texts",
        r'\[\s*\{|\{\s*"[^\n]*"\s*:',
        '{"partial": "hi"}',
        ("jsonl", "simulstreaming"),
    ),
)
#: Lines of a log that may be in front of all.
_PREAMBLE = 20


def refuse_other(source: io.BufferedReader, form: str, name: str = "standard input") -> None:
    """Look at the first bytes without consuming them; waits for them if the source is a pipe.

    Args:
        form: the input as which they are read, one of `redraft.cli.shared.options.INPUTS`.
        name: what it is called in messages.

    Raises:
        InputError: they are of another format; the message says which, and what to do.
    """
    if found := other_format(source.peek(1), form):
        raise InputError(f"{name} has {found}")


def other_format(first: bytes, form: str) -> str | None:
    """Return of which other format an input with these first bytes is, and what to do; None if it may be ``form``."""
    if kind := container(first):
        return f"a recording ({kind}): {_LISTEN}"
    lines = first.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    for number in range(min(len(lines), _PREAMBLE)):
        rest = "\n".join(lines[number:]).lstrip(" \t\r\n")
        other = next((each for each in OTHERS if re.match(each.pattern, rest, re.IGNORECASE)), None)
        if other and form not in other.reads:
            return f"{other.what}: {other.remedy}"
    return None


def standard_input(ending: Ending | None = None, *, drained: bool = False) -> io.BufferedReader:
    """Return standard input, or raise `InputError` if it is closed; data of a descriptor ends by `Ending.pipe`."""
    if sys.stdin is None:
        raise InputError("standard input is closed: name a file to read")
    stdin = sys.stdin.buffer  # of programs that call commands, it may be any stream
    if ending is not None:
        with suppress(OSError):
            return ending.pipe(stdin.fileno(), drained=drained)
    return stdin if isinstance(stdin, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stdin))


#: Words of a text that each update adds.
LAG = 3


@contextmanager
def opened(file: str, form: str, ending: Ending | None = None) -> Iterator[io.BufferedReader]:
    """Open a file, or with ``-`` standard input; raise `InputError` if it cannot be read or has another format."""
    # What is left in a pipe at the end has been recognised, except plain text.
    drained = form != "text" and not is_file(file)
    if file == "-":
        yield standard_input(ending, drained=drained)
        return
    path = Path(file)
    try:
        source = path.open("rb")
    except OSError as error:
        raise InputError(f"input file {str(path)!r} cannot be read: {error.strerror}") from error
    with source:
        reader = source if ending is None else ending.pipe(source.fileno(), drained=drained)
        refuse_other(reader, form, f"input file {file!r}")
        yield reader


def updates(
    source: io.BufferedReader,
    form: str,
    rate: float | None,
    sleep: Callable[[float], object] = time.sleep,
    *,
    by_line: bool = False,
    lag: int = LAG,
) -> Iterator[Item]:
    """Yield the items of a file line by line; what ends its last utterances is `redraft.speech.sentences`.

    Args:
        form: one of `redraft.cli.shared.options.INPUTS`.
        rate: see `redraft.captions.formats.read.read_text`, as for ``by_line`` and ``lag``.
        sleep: waits for the time at which a word of a text is spoken.

    Raises:
        InputError: standard input is clearly in another format.
    """
    refuse_other(source, form)
    if form == "lines":
        items = read_lines(source)
    elif form == "jsonl":
        items = read_jsonl(source)
    elif form == "simulstreaming":
        items = read_simulstreaming(source)
    else:
        items = read_text(source, lag=lag, rate=rate, by_line=by_line)
    yield from not_empty(items if rate is None else paced(items, sleep=sleep))


@contextmanager
def writer(
    form: str,
    languages: Sequence[str],
    width: int | None = None,
    push: Sequence[tuple[str, CaptionService]] = (),
    audience: Audience | None = None,
    *,
    spoken: str | None = None,
    live: bool = False,
    profile: Profile = PROFILES["web"],
) -> Iterator[Writer]:
    """Open a writer to standard output; it is always closed at the end, after an interruption without more pushes.

    Args:
        form: output format.
        languages: languages of the output.
        width: width of the lines of reading mode in cells; None turns it off.
        push: languages whose captions are also sent to a service.
        audience: what may be sent there.
        spoken: the language that is spoken, if it is one of them.
        live: whether captions come while they are spoken.
        profile: what readers of subtitles need.
    """
    made, pushing = open_writer(Output(form, sys.stdout, sys.stderr, languages, profile)), list[PushWriter]()
    for language, service in push:
        pushing.append(made := PushWriter(made, service, language, audience, lines=width is not None))
    if width is not None:
        made = RowsWriter(made, width, live=live, named=form != "jsonl")
    if spoken is not None:
        made = SpokenWriter(made, spoken)
    try:
        yield made
    except KeyboardInterrupt:
        for each in pushing:
            each.drop()
        raise
    finally:
        made.close()
