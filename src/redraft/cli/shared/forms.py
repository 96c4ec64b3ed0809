"""Other formats than the inputs of ``redraft translate``: one table, by which they are refused."""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from redraft.errors import InputError
from redraft.speech.audio import READABLE, container


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
_PLAIN = "save it as plain text in UTF-8"
_TEXTS = "write only its texts, with `--output_format txt` of Whisper for example, and translate that file"
_TIME = r"(?:\d+:)?\d{1,2}:\d\d[.,:;]\d{1,3}"
#: A time next to an arrow, which says that it is one.
_ANY_TIME = r"(?:(?:\d+:)?\d{1,2}:\d\d(?:[.,:;]\d{1,3})?|\d+\.\d+ ?s?)"
_SPAN = rf"{_ANY_TIME}\s*--?>\s*{_ANY_TIME}"
#: A line with a name and a time, or only a time.
_NAMED = r"(?:\[[^\]\n]+\] )?(?:\d+:)?\d{1,2}:\d\d[ \t]*\r?\n"
_OBJECTS = "jsonl", "simulstreaming"


def _with(*names: str) -> str:
    """Return a pattern of an object with these fields in one line."""
    return r"\{" + "".join(rf'(?=[^\n]*"{name}"\s*:)' for name in names)


#: The first one that matches counts.
OTHERS = (
    Other("text in UTF-32", "convert it with `iconv -f UTF-32 -t UTF-8`", "\xff\xfe\0\0", "\xff\xfe\0\0H\0\0\0"),
    Other("text in UTF-16", "convert it with `iconv -f UTF-16 -t UTF-8`", "\xff\xfe|\xfe\xff", "\xff\xfeH\0i\0"),
    Other("text in UTF-16", "convert it with `iconv -f UTF-16LE -t UTF-8`", r"(?:[^\0]\0){2}", "H\0i\0"),
    Other("text in UTF-16", "convert it with `iconv -f UTF-16BE -t UTF-8`", r"(?:\0[^\0]){2}", "\0H\0i"),
    Other("a PDF document", _PLAIN, "%PDF-", "%PDF-1.7"),
    Other("an office document or a ZIP archive", _PLAIN, "PK\x03\x04", "PK\x03\x04"),
    Other("a document in RTF", _PLAIN, r"\{\\rtf", r"{\rtf1"),
    Other("a gzip file", "unpack it with `gunzip`", "\x1f\x8b", "\x1f\x8b\x08"),
    Other("binary data", _LISTEN, r"[^\n]*\0", "\x7fELF\x02\x01\0"),
    Other(
        "escape sequences of a program that redraws its screen",
        "have it write a line for each update instead, as a `transcription_callback` of WhisperLive can",
        r"[^\n]*(?-i:\x1b(?:\[[\d;?]*[A-HJLMSTdfsu]|\[\?(?:47|1047|1049)h|[78cDM])|\x08)",
        "\x1b[H\x1b[2JGood",
        _OBJECTS,
    ),
    Other("XML or HTML", _TEXTS, r"<\?xml|<!doctype|<html|<tt\b|<transcript|<sami\b", '<?xml version="1.0"?>'),
    Other(
        "subtitles with times",
        _TEXTS,
        rf"WEBVTT\b|{_SPAN}|\[Script Info\]|(?:Dialogue|Comment): \d|{_TIME}\s*,\s*{_TIME}\s*[\n,]|\{{\d+\}}\{{\d*\}}"
        r"|\[\d+:\d\d[.:]\d+\]|\[(?:ti|ar|al|by|offset|length|re|ve):",
        "1\n00:00:01,000 --> 00:00:02,500\nHi",
    ),
    Other(
        "a transcript with times, as whisper.cpp and Whisper print it",
        "give whisper.cpp `--no-timestamps`, its stream example a `--step` above 0, and Whisper `--output_format txt`",
        rf"\[{_SPAN}\]|### Transcription \d+ START",
        "[00:00.000 --> 00:03.000]  Hi",
    ),
    Other("a table of Whisper with times", _TEXTS, r"start([\t,])end\1(?:speaker\1)?text\s*\n", "start,end,text\n"),
    Other(
        "a transcript with times",
        _TEXTS,
        rf"\d+:\d\d:\d\d[.,]\d{{3}}\s+\S|{_NAMED}[^\n]+\n+{_NAMED}",
        "0:00\nhello\n0:03\nwelcome",
    ),
    Other(
        "three numbers before each text, as whisper_streaming writes them",
        "remove them with `cut -d' ' -f4-` and use --input text, or run its successor SimulStreaming and use "
        "--input simulstreaming",
        r"\d+\.\d{4} \d+ \d+ +\S",
        "2691.4399 300 1380 Hi",
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
        _with("emission_time"),
        '{"emission_time": 8.8, "text": " Hi"}',
        ("simulstreaming",),
    ),
    Other(
        "messages of vosk-server",
        "read them from the server, with --input vosk:ws://HOST:2700",
        _with("partial"),
        '{"partial": "hi"}',
    ),
    Other(
        "messages of sherpa-onnx",
        "read them from the server, with --input sherpa:ws://HOST:6006",
        _with("segment", "text"),
        '{"text": "hi", "segment": 0}',
    ),
    Other(
        "messages of WhisperLiveKit",
        "let it translate with `redraft serve --compat alignatt-mt`",
        _with("lines", "buffer_transcription"),
        '{"lines": [], "buffer_transcription": "hi"}',
    ),
    Other("a JSON document, not a line for each update", _TEXTS, r'\[\s*\{|\{\s*\n\s*"', '{\n  "text": "Hi",'),
    Other("JSON of another program", "write only its texts", r'\{"[^\n]*"\s*:', '{"text": "hi"}', _OBJECTS),
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
    if kind := container(first, untagged=True):
        convert = "" if kind in READABLE else "convert it to WAV, with ffmpeg for example; "
        return f"a recording ({kind}): {convert}{_LISTEN}"
    lines = first.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    for number in range(min(len(lines), _PREAMBLE)):
        rest = "\n".join(lines[number:]).lstrip(" \t\r\n")
        other = next((each for each in OTHERS if re.match(each.pattern, rest, re.IGNORECASE)), None)
        if other and form not in other.reads:
            return f"{other.what}: {other.remedy}"
    return None
