"""Read JSON: objects with checked fields, one update per line, and the rows of SimulStreaming."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from redraft.captions.events import FLAG, TEXT, Failure, Field, Order, Update, is_seconds, is_text, is_whole, shown
from redraft.captions.formats.read import Item, cleaned, decoded, finished, received
from redraft.errors import InputError

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
