"""Other formats than the inputs of ``redraft translate``: one table, by which they are refused."""

from __future__ import annotations

import io
import re
from typing import NamedTuple

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
    r"\d+:\d\d:\d\d[.,]\d{1,3}\s*(?:,|\s\S)",
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
        "text in another encoding",
        "convert it to UTF-8, with `iconv -f UTF-16 -t UTF-8` for example",
        r"\xff\xfe|\xfe\xff|(?:[^\0]\0){2}|(?:\0[^\0]){2}",
        "\xff\xfeH\0i\0",
    ),
    Other("a document", "save it as plain text in UTF-8", r"%PDF-|PK\x03\x04|\{\\rtf|\x1f\x8b", "%PDF-1.7"),
    Other("binary data", _LISTEN, r"[^\n]*\0", "\x7fELF\x02\x01\0"),
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
        "JSON Lines",
        "read them with --input jsonl",
        r'\{[^\n]*"(?:utterance|seq)"\s*:',
        '{"utterance": "1", "seq": 0, "text": "Hi"}',
        ("jsonl",),
    ),
    Other(
        "the rows of SimulStreaming",
        "read them with --input simulstreaming",
        r'\{[^\n]*"emission_time"\s*:',
        '{"emission_time": 8.8, "text": " Hi"}',
        ("simulstreaming",),
    ),
    Other(
        "JSON of another program",
        "write only its texts, or read them from a server with --input vosk:ws://HOST:2700 or sherpa:ws://HOST:6006",
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
