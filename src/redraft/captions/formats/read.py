"""Read transcripts: parse the lines of a pipe or file into updates as they arrive.

Each reader takes a binary file (``sys.stdin.buffer``, or a file opened with ``"rb"``), reads a line only when the next
item is requested, and yields `Update` and `Failure` in the order of the lines. Invalid content never raises: it becomes
one `Failure`, and reading continues with the next line.  Lines are numbered from 1.

All readers accept LF and CR LF as the end of a line, a last line without one, and a UTF-8 byte order mark at the start.
Control characters (NUL, tab, escape, ...) and Unicode's line and paragraph separators in a text become spaces, and
spaces around the text are dropped.  An empty input is one failure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, TypeAlias

from redraft.captions.events import CONTROLS, Failure, Order, Update, shown
from redraft.captions.formats.parse import (
    MAX_LINE_BYTES,
    NAME,
    LineSource,
    check_fields,
    decoded,
    json_object,
    refuse_unknown,
    whole,
)
from redraft.captions.words import WORD
from redraft.errors import InputError, OptionError

Item: TypeAlias = Update | Failure

#: Maximum number of words in a line of plain text: some minutes of speech without a pause.
MAX_TEXT_WORDS = 500


def printable(text: str) -> str:
    """Replace control characters and line breaks by spaces, so that the text is one line without terminal escapes."""
    return CONTROLS.sub(" ", text)


def read_lines(source: LineSource, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Item]:
    """Read one hypothesis per line, the whole text so far; a blank line ends the utterance.

    Every line is immediately yielded as a partial update.  At a blank line or the end of the input, the last one is
    repeated as a final update with the next ``seq``.  Utterances are named "1", "2", ...  A line of only spaces and
    control characters counts as blank.

    Args:
        source: the input.
        max_line_bytes: longer lines are skipped with a failure.

    Raises:
        OptionError: ``max_line_bytes`` is below 1.
    """
    return or_empty(_read_lines(decoded(source, whole("max_line_bytes", max_line_bytes, 1))))


def _read_lines(lines: Iterator[tuple[int, str | Failure]]) -> Iterator[Item]:
    utterance, last = 1, None
    for _, text in lines:
        if isinstance(text, Failure):
            yield text
        elif hypothesis := printable(text).strip():
            last = Update(str(utterance), 0 if last is None else last.seq + 1, hypothesis)
            yield last
        elif last:
            yield finished(last)
            utterance, last = utterance + 1, None
    if last:
        yield finished(last)


def finished(last: Update) -> Update:
    """Return the last update of an unfinished utterance as a final one, with the next ``seq``."""
    return replace(last, seq=last.seq + 1, final=True)


def read_jsonl(source: LineSource, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Item]:
    """Read one JSON object per line: ``{"utterance": "7", "seq": 3, "text": "so far", "final": false, "time": 12.5}``.

    ``utterance`` is a string or a whole number (7 and "7" are the same), ``seq`` a whole number of at least 0 that
    increases within an utterance, ``text`` a string; ``final`` (default false) and ``time`` (default null; seconds from
    the start, at least 0) are optional.  An empty text means that nothing is recognised yet.  Unknown fields and
    updates after a final one are errors.  If a key occurs twice, the last one counts; blank lines are ignored.  The
    names of all utterances are kept in memory.

    Args:
        source: the input.
        max_line_bytes: longer lines are skipped with a failure.

    Raises:
        OptionError: ``max_line_bytes`` is below 1.
    """
    return or_empty(_read_jsonl(decoded(source, whole("max_line_bytes", max_line_bytes, 1))))


def _read_jsonl(lines: Iterator[tuple[int, str | Failure]]) -> Iterator[Item]:
    order = Order()
    for number, text in lines:
        if isinstance(text, Failure):
            yield text
        elif text.strip():
            try:
                update = parse_update(json_object(text, (*_NAMES, "type")))
            except InputError as error:
                yield Failure(str(error), number)
                continue
            try:
                order.accept(update)
            except InputError as error:
                yield Failure(str(error), number, update.utterance, update.seq)
            else:
                yield update


def ended(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, then a final update for every utterance that has none."""
    unfinished: dict[str, Update] = {}
    for item in items:
        if isinstance(item, Update):
            unfinished[item.utterance] = item
            if item.final:
                del unfinished[item.utterance]
        yield item
    yield from map(finished, unfinished.values())


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


def read_text(
    source: LineSource, *, lag: int = 3, rate: float | None = None, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[Item]:
    """Stream plain text: every non-blank line is an utterance, revealed ``lag`` words at a time.

    Lines of more than `MAX_TEXT_WORDS` words are skipped with a failure, since each of their many updates would
    translate all the words so far.

    Args:
        source: the text.
        lag: words added by each update, at least 1; see `prefixes`.
        rate: words per second, above 0; updates then have the time at which their last word is spoken, from the start
            of the text, which `paced` waits for.  None for no times.
        max_line_bytes: longer lines are skipped with a failure.

    Raises:
        OptionError: ``lag``, ``rate`` or ``max_line_bytes`` is out of range.
    """
    if rate is not None and (isinstance(rate, bool) or not (math.isfinite(rate) and rate > 0)):
        raise OptionError(f"rate must be a number of words a second over 0, not {rate!r}")
    lines = decoded(source, whole("max_line_bytes", max_line_bytes, 1))
    return or_empty(_read_text(lines, whole("lag", lag, 1), rate))


def _read_text(lines: Iterator[tuple[int, str | Failure]], lag: int, rate: float | None) -> Iterator[Item]:
    utterance = spoken = 0
    for number, text in lines:
        if isinstance(text, Failure):
            yield text
            continue
        if (length := len(WORD.findall(text))) > MAX_TEXT_WORDS:
            message = f"the line has {length} words and was skipped, since an utterance may have {MAX_TEXT_WORDS}"
            yield Failure(f"{message}: put each sentence on a line of its own", number)
            continue
        revealed = _prefixes(printable(text).strip(), lag)
        utterance += bool(revealed)
        for seq, (prefix, words) in enumerate(revealed):
            when = None if rate is None else (spoken + words) / rate
            yield Update(str(utterance), seq, prefix, seq == len(revealed) - 1, when)
        spoken += revealed[-1][1] if revealed else 0


def paced(
    items: Iterable[Item], clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
) -> Iterator[Item]:
    """Yield each item when its ``time`` has passed since the first one was requested.

    Items without a time, and late ones, are not delayed.
    """
    start = clock()
    for item in items:
        if isinstance(item, Update) and item.time is not None:
            while (wait := start + item.time - clock()) > 0:
                sleep(min(wait, 3600.0))  # a longer wait can overflow the system's timer
        yield item


def or_empty(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items, or a failure if there are none."""
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        yield Failure("the input is empty: at least one line of text was expected")


_NAMES = tuple(each.name for each in fields(Update))
_NEEDED = tuple(each.name for each in fields(Update) if each.default is MISSING)


def parse_update(found: Mapping[str, Any]) -> Update:
    """Return the update described by a JSON object; its texts are cleaned as in all readers.

    Raises:
        InputError: a field is missing or invalid.
    """
    refuse_unknown(found, (*_NAMES, "type"))
    if missing := [name for name in _NEEDED if name not in found]:
        raise InputError(f"{', '.join(missing)} must be given: an update needs {', '.join(_NEEDED)}")
    if found.get("type", "update") != "update":
        raise InputError(f'type must be "update", if it is given, not {shown(found["type"])}')
    values = one_line(found)
    values.pop("type", None)
    check_fields(values, {"utterance": NAME}, (), "an update")
    values["utterance"] = str(values["utterance"])
    update = Update(**values)
    return update if update.time is None else replace(update, time=float(update.time))


def one_line(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an update with texts as one line each: without control characters and outer spaces."""
    texts = {name: printable(found[name]).strip() for name in _TEXTS if isinstance(found.get(name), str)}
    return {**found, **texts}


#: Fields of an update that are text to show.
_TEXTS = tuple(each.name for each in fields(Update) if each.metadata.get("one_line"))
