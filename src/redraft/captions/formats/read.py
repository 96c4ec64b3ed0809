"""Read transcripts: parse the lines of a pipe or file into updates as they arrive.

Each reader takes a binary file (``sys.stdin.buffer``, or a file opened with ``"rb"``), reads a line only when the next
item is requested, and yields `Update` and `Failure` in the order of the lines. Invalid content never raises: it becomes
one `Failure`, and reading continues with the next line.  Lines are numbered from 1.

Lines longer than `MAX_LINE_BYTES`, or `MAX_TEXT_BYTES` of plain text, are skipped with a failure.  All readers accept
LF and CR LF as the end of a line, a last line without one, and a byte order mark of UTF-8.  Control
characters (NUL, tab, escape, ...) and Unicode's line and paragraph separators in a text become spaces, and spaces
around the text are dropped.  In lines and plain text, terminal escapes vanish, and a carriage return begins the line
again.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar, cast

from redraft.captions.events import (
    CONTROLS,
    FLAG,
    TEXT,
    Failure,
    Field,
    Order,
    Update,
    is_seconds,
    is_text,
    is_whole,
    shown,
)
from redraft.captions.sentence import sentence_ends
from redraft.captions.words import WORD, bare_words, is_silence, joined
from redraft.errors import InputError, whole

#: Sequences with which programs move a terminal's cursor, erase and colour.
ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # such as colours
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\x9d\n]*(?:\x07|\x1b\\\\|\x9c)"  # such as titles
    "|\x1b[ -/]*[0-Z\\\\^-~]"
)
#: Invisible characters that stand alone: those that Unicode calls ignorable, and the empty Braille cell.
_LONE_INVISIBLE = re.compile(
    "(?<!\\S)[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+(?!\\S)"
)
#: Maximum length of a line in bytes; a spoken utterance has a few hundred.
MAX_LINE_BYTES = 65_536
#: The same for plain text: a book without a line break.
MAX_TEXT_BYTES = 1 << 20


def decoded(readline: Callable[[int], bytes], limit: int = MAX_LINE_BYTES) -> Iterator[tuple[int, str | Failure, bool]]:
    """Yield lines in bounded memory: the number, the text or what is wrong with it, and whether the line ends there."""
    number, ends = 0, True
    while raw := readline(limit + 2):  # 2 more for CR LF
        number, ends = number + ends, not raw.endswith(b"\r")
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > limit:
            ends = True
            yield number, Failure(f"the line is longer than {limit} bytes and was skipped", number), ends
            while raw and not raw.endswith(b"\n"):
                raw = readline(limit)
            continue
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
            yield number, Failure(f"the line must be UTF-8, but {found} of the line is not", number), ends
        else:
            yield number, text, ends


def _redrawn(source: io.IOBase) -> Callable[[int], bytes]:
    """Return a ``readline`` that also ends a line at a carriage return, as soon as it comes."""
    reader = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, source))

    def readline(size: int) -> bytes:
        found = bytearray()
        while len(found) < size and (ahead := reader.peek(1)):
            place = min((each for each in map(ahead.find, (b"\n", b"\r")) if each >= 0), default=len(ahead) - 1) + 1
            found += reader.read(min(place, size - len(found)))
            if found.endswith((b"\n", b"\r")):
                break
        return bytes(found)

    return readline


Item: TypeAlias = Update | Failure
_Item = TypeVar("_Item", bound=Item)

#: Maximum number of words in a sentence of plain text: some minutes of speech without a pause.
MAX_TEXT_WORDS = 500


def not_empty(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an input; a failure if there are none."""
    yield next(items, Failure("the input is empty: at least one line of text was expected"))
    yield from items


def printable(text: str) -> str:
    """Replace control characters and line breaks by spaces, so that the text is one line without terminal escapes."""
    return CONTROLS.sub(" ", text)


#: What recognisers write where there is no speech, also among words.
_SILENCE = re.compile(
    r"\[ ?(?:BLANK_AUDIO|SILENCE|NO[ _]SPEECH|_BEG_|_TT_\d+) ?\]|<\|(?:nospeech|nocaptions|\d+\.\d+)\|>"
)


def cleaned(text: str) -> str:
    """Return a text as one line, without outer spaces, invisible characters that stand alone, and signs of silence."""
    text = _LONE_INVISIBLE.sub("", printable(text)).strip()
    return " ".join(_SILENCE.sub(" ", text).split()) if _SILENCE.search(text) else text


def received(text: str) -> str:
    """Return a received text as one line (`cleaned`); empty if nothing is said in it (`is_silence`)."""
    text = cleaned(text)
    return "" if is_silence(text) and is_text(text) else text  # half a character is refused


def _typed(text: str) -> str:
    """Return a text that may have been written for a terminal as one line, without escapes."""
    return _LONE_INVISIBLE.sub("", printable(ESCAPES.sub("", text))).strip()


#: Number of lines without an empty one after which it is reported that none has grown.
UNGROWN = 20


def read_lines(source: io.IOBase) -> Iterator[Item]:
    """Read one hypothesis per line: the whole text so far, which replaces the last one; an empty line ends it.

    Every line is immediately yielded as a partial update.  At an empty line or the end of the input, the last one is
    repeated as a final update with the next ``seq``.  Utterances are named "1", "2", ...  A line of only spaces and
    control characters counts as empty.

    After a carriage return the line begins again, as on a terminal: each version is an update, and the end of the line
    ends the utterance.

    Lines that have never grown are reported as a failure, after `UNGROWN` of them without an empty line, or at the end
    of a shorter input without one: each is probably a text of its own, and all but the last would be lost.
    """
    utterance, last = 1, None
    returned = again = False  # whether there was a carriage return in this line, and something behind it
    replaced, sound = 1, False  # number of lines of the utterance, and whether any has ever grown, or this was reported
    for number, text, ends in decoded(_redrawn(source)):
        again = again or (returned and text != "")
        over = ends and again
        if isinstance(text, Failure):
            yield text
        elif not (text := _typed(text)):
            over = over or not returned
        elif received(text):  # else it says nothing: neither replaces the last hypothesis nor ends it
            if last and text != last.text:
                replaced, sound = replaced + 1, sound or returned or _goes_on(last.text, text)
            last = Update(str(utterance), 0 if last is None else last.seq + 1, text)
            yield last
            if replaced == UNGROWN and not sound:
                sound = True
                yield _ungrown(replaced, number)
        if last and over:
            yield finished(last)
            utterance, last, replaced = utterance + 1, None, 1
        returned, again = not ends, again and not ends
    if last:
        yield finished(last)
    if replaced > 1 and utterance == 1 and not sound:
        yield _ungrown(replaced)


def _goes_on(before: str, after: str) -> bool:
    """Whether a text has more words than one before it, and begins with those."""
    old, new = bare_words(before), bare_words(after)
    return 0 < len(old) < len(new) and new[: len(old)] == old


def _ungrown(count: int, line: int | None = None) -> Failure:
    return Failure(
        f"{count} lines have replaced each other and none has grown: with --input lines, each line is the whole text "
        "so far, and an empty line ends it; if each line is a text of its own, use --input text",
        line,
    )


def finished(last: Update) -> Update:
    """Return the last update of an unfinished utterance as a final one, with the next ``seq``.

    A message becomes a plain update, since its ``seq`` may have been the highest that clients can send.
    """
    given = {each.name: getattr(last, each.name) for each in fields(Update)}
    return Update(**{**given, "seq": last.seq + 1, "final": True})


def prefixes(text: str, lag: int = 3) -> list[str]:
    """Return the prefixes of a text as a recogniser would reveal them, ``lag`` words at a time.

    The last is the whole text.

    A word is a run of non-spaces or, in Chinese and Japanese, a character.  SSBD v2 (section 4.1) streams Flores like
    this with a lag of 3.  A blank text has no prefixes.

    Raises:
        OptionError: ``lag`` is below 1.
    """
    return [prefix for prefix, _ in _prefixes(text.strip(), whole("lag", lag, 1))]


def _prefixes(text: str, lag: int) -> list[tuple[str, int]]:
    """Return each prefix with its number of words."""
    ends = [word.end() for word in WORD.finditer(text)]
    counts = [*range(lag, len(ends), lag), len(ends)] if ends else []
    return [(text[: ends[count - 1]], count) for count in counts]


def read_text(source: io.IOBase, *, lag: int = 3, rate: float | None = None, by_line: bool = False) -> Iterator[Item]:
    """Stream plain text: every sentence is an utterance, revealed ``lag`` words at a time.

    A sentence ends at its mark (`redraft.captions.sentence.sentence_ends`) or at an empty line, so a line may be a
    sentence, a paragraph, or a part of one.  After `MAX_TEXT_WORDS` words it ends in any case, since each of its many
    updates translates all the words so far.

    Args:
        source: the text.
        lag: words added by each update, at least 1; see `prefixes`.
        rate: words per second, above 0; updates then have the time at which their last word is spoken, from the start
            of the text, which `paced` waits for.  None for no times.
        by_line: whether every line that is not empty is an utterance instead.
    """
    number, said = 0, 0
    for text in _texts(source, by_line):
        if isinstance(text, Failure):
            yield text
            continue
        number += 1
        found = _prefixes(text, lag)
        for seq, (prefix, words) in enumerate(found):
            time = None if rate is None else (said + words) / rate
            yield Update(str(number), seq, prefix, seq == len(found) - 1, time)
        said += found[-1][1]


def _texts(source: io.IOBase, by_line: bool) -> Iterator[str | Failure]:
    """Yield the sentences of a text, or its lines; none is blank or too long."""
    rest = line = ""
    for _, text, ends in decoded(_redrawn(source), MAX_TEXT_BYTES):
        if isinstance(text, Failure):
            yield text
            continue
        line = _typed(text) or line
        if not ends:
            continue
        over, rest, line = by_line or not line, joined(rest, line), ""
        *sentences, last = pairwise([0, *([] if by_line else sentence_ends(rest)), len(rest)])
        for begin, end in sentences:
            yield from _short(rest[begin:end])
        parts = [*_short(rest[slice(*last)])]
        rest = "" if over or not parts else parts.pop()
        yield from parts
    if rest:
        yield rest


def _short(text: str) -> Iterator[str]:
    """Yield the parts of a text, of which each has as many words as an utterance may have."""
    ends = [word.end() for word in WORD.finditer(text)]
    for begin, end in pairwise([0, *ends[MAX_TEXT_WORDS - 1 : -1 : MAX_TEXT_WORDS], *ends[-1:]]):
        yield text[begin:end].strip()


def paced(
    items: Iterable[_Item],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    *,
    speed: float = 1.0,
) -> Iterator[_Item]:
    """Yield each item when its ``time`` has passed since the first one was requested, at ``speed`` times the pace.

    Items without a time, and late ones, are not delayed.
    """
    start = clock()
    for item in items:
        if isinstance(item, Update) and item.time is not None:
            while (wait := start + item.time / speed - clock()) > 0:
                sleep(min(wait, 3600.0))  # a longer wait can overflow the system's timer
        yield item


Parsed = TypeVar("Parsed")

_NAMES = *(each.name for each in fields(Update)), "type"
_NEEDED = tuple(each.name for each in fields(Update) if each.default is MISSING)
#: What `Update` does not check itself.
_UPDATE: dict[str, Field] = {
    "type": (lambda value: value == "update", '"update"'),
    "utterance": (
        lambda value: is_whole(value) or (is_text(value) and value != ""),
        "a non-empty string or a whole number",
    ),
}


def json_object(text: str, names: Sequence[str]) -> dict[str, Any]:
    """Parse a line as a JSON object.

    Args:
        names: the allowed fields, for the error message.

    Raises:
        InputError: it is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the line is not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):  # of Python's limits
        raise InputError("the line is not usable JSON: a number is too long, or it is nested too deeply") from None
    if not isinstance(value, dict):
        raise InputError(f"the line must be a JSON object with {', '.join(names)}, not {shown(value)}")
    return value


def check_fields(found: Mapping[str, Any], known: Mapping[str, Field], needed: Sequence[str], reader: str) -> None:
    """Check the values of known fields, and that no required field is missing.

    Args:
        found: the fields; unknown ones are ignored.
        reader: what requires them, in words.

    Raises:
        InputError: a field is missing or has an invalid value.
    """
    missing = [name for name in needed if name not in found]
    if missing:
        raise InputError(f"{', '.join(missing)} must be given: {reader} needs {', '.join(needed)}")
    for name, (allowed, words) in known.items():
        if name in found and not allowed(found[name]):
            raise InputError(f"{name} must be {words}, not {shown(found[name])}")


def read_jsonl(source: io.IOBase) -> Iterator[Item]:
    """Read one JSON object per line: ``{"utterance": "7", "seq": 3, "text": "so far", "final": false, "time": 12.5}``.

    ``utterance`` is a string or a whole number (7 and "7" are the same), ``seq`` a whole number of at least 0 that
    increases within an utterance, ``text`` a string; ``final`` (default false), ``time`` (default null; seconds from
    the start, at least 0), ``speaker`` and ``committed`` (number of words that stay as they are) are optional.  An
    empty text means that nothing is recognised yet.  Unknown fields and updates after a final one are errors.  If a key
    occurs twice, the last one counts; blank lines are ignored.  The names of all utterances are kept in memory.
    """
    order = Order()

    def parse(text: str, number: int) -> Item:
        update = parse_update(json_object(text, _NAMES))
        try:
            order.accept(update)
        except InputError as error:
            return Failure(str(error), number, update.utterance, update.seq)
        return update

    yield from parsed(source, parse)


def parsed(source: io.IOBase, parse: Callable[[str, int], Parsed]) -> Iterator[Parsed | Failure]:
    """Yield what ``parse`` makes of each line that is not blank (text and number), or a failure where it raises."""
    for number, text, _ in decoded(source.readline):
        if isinstance(text, Failure):
            yield text
        elif text.strip():
            try:
                yield parse(text, number)
            except InputError as error:
                yield Failure(str(error), number)


def parse_update(found: Mapping[str, Any]) -> Update:
    """Return the update described by a JSON object; its texts are cleaned as in all readers.

    Raises:
        InputError: a field is missing or invalid.
    """
    for name in found:
        if name not in _NAMES:
            raise InputError(f"the field {shown(name)} is not known: allowed are {', '.join(_NAMES)}")
    check_fields(found, _UPDATE, _NEEDED, "an update")
    values = one_line(found)
    values.pop("type", None)
    values["utterance"] = str(values["utterance"])
    for name in ("time", "start"):
        if is_seconds(values.get(name)):
            values[name] = float(values[name])
    return Update(**values)


def one_line(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an update with texts as one line each: without control characters and outer spaces."""
    texts = {name: cleaned(found[name]) for name in _TEXTS if isinstance(found.get(name), str)}
    if "text" in texts:
        texts["text"] = received(texts["text"])
    return {**found, **texts}


#: Fields of an update that are text to show.
_TEXTS = tuple(each.name for each in fields(Update) if each.metadata.get("one_line"))


_ROW: dict[str, Field] = {
    "emission_time": (is_seconds, "a finite number of seconds, 0 or more"),
    "status": (lambda value: value is None, "null, as in the rows of the recogniser"),
    "text": TEXT,
    "is_final": FLAG,
}


def read_simulstreaming(source: io.IOBase) -> Iterator[Item]:
    """Read rows from SimulStreaming's recogniser.

    Each is a line such as ``{"emission_time": 8.8, "text": " So,", "is_final": false}``.  ``text`` is appended to the
    utterance's text as is: it starts with a space if a word does.  The rows of its translator, which have a ``status``,
    are failures.

    Each row becomes an update with the whole text of the utterance so far, at its ``emission_time``.  A row with
    ``is_final`` ends the utterance; SimulStreaming writes it at pauses if started with ``--vac``, often without text.
    Utterances are named "1", "2", ...; the end of the input ends the last one.  A row needs ``emission_time`` and
    ``text`` or ``is_final``; other unknown fields are ignored.
    """
    utterance, said = 1, ""
    last: Update | None = None
    for row in parsed(source, lambda text, _: _row(text)):
        if isinstance(row, Failure):
            yield row
            continue
        said += row.get("text", "")
        text, final = received(said), row.get("is_final", False)
        if last or text:  # a pause starts no utterance
            last = Update(str(utterance), last.seq + 1 if last else 0, text, final, float(row["emission_time"]))
            yield last
        if final:
            utterance, said, last = utterance + (last is not None), "", None
    if last:
        yield finished(last)


def _row(text: str) -> dict[str, Any]:
    row = json_object(text, tuple(_ROW))
    check_fields(row, _ROW, ("emission_time",), "a row")
    if "text" not in row and "is_final" not in row:
        raise InputError("text must be given unless is_final is")
    return row
