"""Find out by its first bytes whether input has another form than ``--input`` says."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator

from redraft.captions.events import Update
from redraft.captions.formats.read import ESCAPES, Item
from redraft.errors import InputError
from redraft.speech.audio import READABLE, container

_AUDIO = "`redraft listen FILE` translates speech in WAV, FLAC, MP3 and Ogg"
#: First bytes of files that are not text.
_BINARY = {
    b"\xff\xfe\0\0": "text in UTF-32",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\x1f\x8b": "a gzip file",
    b"{\\rtf": "a document in RTF",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
_REMEDIES = {
    "text in UTF-32": "convert it with `iconv -f UTF-32 -t UTF-8`",
    "text in UTF-16": "convert it with `iconv -f UTF-16 -t UTF-8`",
    "a gzip file": "unpack it with `gunzip`",
}
#: The beginning of text in UTF-16 without a byte order mark: letters of which one byte is 0.
_UTF_16 = {"LE": re.compile(rb"(?:[^\0]\0){2}"), "BE": re.compile(rb"(?:\0[^\0]){2}")}
_STAMP = r"(?:\d+:)?\d{1,2}:\d\d[.,:;]\d{1,3}"
#: A time next to an arrow, which says that it is one.
_TIMES = r"(?:(?:\d+:)?\d{1,2}:\d\d(?:[.,:;]\d{1,3})?|\d+\.\d+ ?s?)"
_SPAN = rf"{_TIMES}\s*--?>\s*{_TIMES}"
#: A line with a name and a time, or only a time.
_NAMED = r"(?:\[[^\]\n]+\] )?(?:\d+:)?\d{1,2}:\d\d[ \t]*\n"
#: Forms of text that no option reads, and what helps.
_MARKED = (
    (rf"WEBVTT\b|(?:[^\n]*\n)?\s*{_SPAN}|\[Script Info\]|(?:Dialogue|Comment): \d", "subtitles with times"),
    (rf"{_STAMP}\s*,\s*{_STAMP}\s*[\n,]|\{{\d+\}}\{{\d*\}}|<sami\b", "subtitles with times"),
    (r"\[\d+:\d\d[.:]\d+\]|\[(?:ti|ar|al|by|offset|length|re|ve):", "subtitles with times"),
    (
        rf"(?:[^\n]*\n\s*)?\[{_SPAN}\]|### Transcription \d+ START",
        "a transcript with times, as whisper.cpp and Whisper print it",
    ),
    (r"start([\t,])end\1(?:speaker\1)?text\s*\n", "a table of Whisper with times"),
    (rf"\d+:\d\d:\d\d[.,]\d{{3}}\s+\S|{_NAMED}[^\n]+\n+{_NAMED}", "a transcript with times"),
    (r"<\?xml|<!doctype|<html|<tt\b|<transcript", "XML or HTML"),
)
_ONLY_TEXT = "write only its texts, a line each, and read them with --input text"
#: Lines of a log that may be in front of all.
_PREAMBLE = 20
#: Three numbers before a text, and what one of them has if they are times: decimals, or three digits.
_NUMBERS = re.compile(r"(\d+(?:\.\d+)?)[ \t]+(\d+(?:\.\d+)?)[ \t]+(\d+(?:\.\d+)?)[ \t]+\S*[^\W\d]")
_TIME = re.compile(r"\.\d|\d{3}")
#: JSON over several lines, or a list of objects.
_DOCUMENT = re.compile(r'\[\s*\{|\{\s*\n\s*"')
#: A form of JSON Lines by the fields that its first line has.
_FIELDS = (
    ({"utterance", "seq"}, "JSON Lines", "read them with --input jsonl", "jsonl"),
    ({"emission_time"}, "the rows of SimulStreaming", "read them with --input simulstreaming", "simulstreaming"),
    ({"partial"}, "messages of vosk-server", "read them from the server, with --input vosk:ws://HOST", ""),
    ({"lines"}, "messages of WhisperLiveKit", "read them from the server, with --recogniser of redraft listen", ""),
    (
        {"segment", "text"},
        "messages of sherpa-onnx",
        "read them from the server, with --input sherpa:ws://HOST:6006",
        "",
    ),
)


def refuse_other(source: io.BufferedReader, form: str, name: str = "standard input") -> None:
    """Look at the first bytes without consuming them; waits for them if the source is a pipe.

    Args:
        form: its form, one of `redraft.cli.shared.options.INPUTS`.
        name: what it is called in messages.

    Raises:
        InputError: they are clearly in another form; the message says which, and what reads it.
    """
    first = source.peek(1)
    if kind := container(first, untagged=True):
        remedy = _AUDIO if kind in READABLE else f"convert it to WAV, for example with ffmpeg; {_AUDIO}"
        raise InputError(f"{name} is a recording ({kind}), not a transcript: {remedy}")
    if binary := next((words for head, words in _BINARY.items() if first.startswith(head)), None):
        remedy = _REMEDIES.get(binary, "save it as plain text in UTF-8")
        raise InputError(f"{name} is {binary}, not a transcript in UTF-8: {remedy}")
    text = first.decode(errors="replace").removeprefix("\ufeff").lstrip()
    if order := next((order for order, letters in _UTF_16.items() if letters.match(first)), None):
        raise InputError(
            f"{name} is text in UTF-16, not a transcript in UTF-8: convert it with `iconv -f UTF-16{order} -t UTF-8`"
        )
    if b"\0" in first.partition(b"\n")[0] or (b"\0" in first and "\ufffd" in text):
        raise InputError(f"{name} is binary, not a transcript in UTF-8 ({_AUDIO})")
    lines = [_plain(line) for line in text.split("\n")[:_PREAMBLE]]
    for number in range(len(lines)):
        if found := other_form("\n".join(lines[number:]), form):
            raise InputError(f"{name} has {found}")
    if _has_numbers(text):
        raise InputError(
            f"{name} has three numbers before each text, as whisper_streaming writes them: remove them with "
            "`cut -d' ' -f4-` and use --input text, or run its successor SimulStreaming and use --input simulstreaming"
        )


def watched(items: Iterable[Item], form: str) -> Iterator[Item]:
    """Pass on the items of lines or plain text until one turns out to be of another form, as after lines of a log.

    Raises:
        InputError: an item is of another form.
    """
    for item in items:
        if isinstance(item, Update) and item.seq == 0 and (found := other_form(f"{item.text}\n", form)):
            raise InputError(f"the input has {found}")
        yield item


def other_form(text: str, form: str) -> str | None:
    """Return what a text that is clearly not in ``form`` is instead, and how to translate it; otherwise None."""
    text = text.lstrip()
    if text.startswith(("{", "[")) and (found := _json(text, form)):
        return found
    found = next((words for pattern, words in _MARKED if re.match(pattern, text, re.IGNORECASE)), None)
    return None if found is None else f"{found}: {_ONLY_TEXT}"


def _plain(line: str) -> str:
    """Return a line without escapes for terminals."""
    return ESCAPES.sub("", line)


def _json(text: str, form: str) -> str | None:
    """As `other_form`, for a text that begins like JSON."""
    if _DOCUMENT.match(text):
        return f"a JSON document, not a line for each update: {_ONLY_TEXT}"
    line = text.partition("\n")[0].strip()
    try:
        fields = set(value) if isinstance(value := json.loads(line), dict) else set()
    except (ValueError, RecursionError):
        fields = set()
    for needed, words, remedy, reads in _FIELDS:
        if needed <= fields:
            return None if reads == form else f"{words}: {remedy}"
    if form in ("lines", "text") and fields and fields.isdisjoint(("utterance", "seq")):
        return "JSON of another program: write only its texts, an update each line"
    if form in ("lines", "text") and line.startswith('{"'):
        return "JSON Lines: read them with --input jsonl"
    return None


def _has_numbers(text: str) -> bool:
    lines = [_NUMBERS.match(line) for line in text.split("\n")[:3] if line.strip()]
    if not all(line and _TIME.search(line[0]) and _are_times(*map(float, line.groups())) for line in lines):
        return False
    return len(lines) > 1 or any(line and "." in line[1] for line in lines)  # 1 234 567 is one number


def _are_times(written: float, start: float, end: float) -> bool:
    return start < end <= written
