"""Read JSON: objects with checked fields, one update per line, and the rows of SimulStreaming."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from redraft.captions.events import FLAG, TEXT, Failure, Field, Order, Update, is_seconds, is_text, is_whole, shown
from redraft.captions.formats.read import Item, LineSource, cleaned, decoded, finished, not_empty, received
from redraft.captions.words import WORD, joined
from redraft.errors import InputError

Parsed = TypeVar("Parsed")

_NAMES = tuple(each.name for each in fields(Update))
_NEEDED = tuple(each.name for each in fields(Update) if each.default is MISSING)


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


NAME: Field = (
    lambda value: is_whole(value) or (is_text(value) and value != ""),
    "a non-empty string or a whole number",
)


@not_empty
def read_jsonl(source: LineSource) -> Iterator[Item]:
    """Read one JSON object per line: ``{"utterance": "7", "seq": 3, "text": "so far", "final": false, "time": 12.5}``.

    ``utterance`` is a string or a whole number (7 and "7" are the same), ``seq`` a whole number of at least 0 that
    increases within an utterance, ``text`` a string; ``final`` (default false), ``time`` (default null; seconds from
    the start, at least 0), ``speaker`` and ``committed`` (number of words that stay as they are) are optional.  An
    empty text means that nothing is recognised yet.  Unknown fields and updates after a final one are errors.  If a key
    occurs twice, the last one counts; blank lines are ignored.  The names of all utterances are kept in memory.
    """
    order = Order()

    def parse(text: str, number: int) -> Item:
        update = parse_update(json_object(text, (*_NAMES, "type")))
        try:
            order.accept(update)
        except InputError as error:
            return Failure(str(error), number, update.utterance, update.seq)
        return update

    yield from parsed(source, parse)


def parsed(source: LineSource, parse: Callable[[str, int], Parsed]) -> Iterator[Parsed | Failure]:
    """Yield what ``parse`` makes of each line that is not blank (text and number), or a failure where it raises."""
    for number, text, _ in decoded(source):
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
    known = *_NAMES, "type"
    for name in found:
        if name not in known:
            raise InputError(f"the field {shown(name)} is not known: allowed are {', '.join(known)}")
    check_fields(
        found, {"type": (lambda value: value == "update", '"update"'), "utterance": NAME}, _NEEDED, "an update"
    )
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


_STATES = ("COMPLETE", "INCOMPLETE")
_FIELDS: dict[str, Field] = {
    "emission_time": (is_seconds, "a finite number of seconds, 0 or more"),
    "status": (lambda value: value is None or value in _STATES, f"{', '.join(_STATES)} or null"),
    "text": TEXT,
    "unconfirmed_text": TEXT,
    "is_final": FLAG,
}


@not_empty
def read_simulstreaming(source: LineSource) -> Iterator[Item]:
    """Read rows from SimulStreaming's recogniser and its translator.

    Each is a line such as
    ``{"emission_time": 8.8, "status": "COMPLETE", "text": " So,", "unconfirmed_text": "and ask", "is_final": false}``.
    ``text`` is confirmed and appended to the utterance's confirmed text as is: it starts with a space if a word does.
    ``unconfirmed_text`` is the tail that may still change; each row replaces it.  The recogniser's rows have neither
    ``status`` nor tail.  Of the translator's, INCOMPLETE rows preview what the next COMPLETE row confirms, so they add
    nothing to the confirmed text; the tail does not start with a space, nor does the text of the last row, which
    confirms the tail.

    Each row becomes an update with the whole text of the utterance so far, confirmed and unconfirmed, at its
    ``emission_time``.  A row with ``is_final`` ends the utterance; SimulStreaming writes it at pauses if started with
    ``--vac``, often without text.  Utterances are named "1", "2", ...; the end of the input ends the last one.  A row
    needs ``emission_time`` and ``text`` or ``is_final``; other unknown fields are ignored.
    """
    utterance, confirmed = 1, ""
    last: Update | None = None
    for row in parsed(source, lambda text, _: _row(text)):
        if isinstance(row, Failure):
            yield row
            continue
        final = row.get("is_final", False)
        now = _with_new(confirmed, row)
        text = received(joined(now, row.get("unconfirmed_text", "")))
        if last or text:  # a pause starts no utterance
            seq, time = last.seq + 1 if last else 0, float(row["emission_time"])
            last = Update(str(utterance), seq, text, final, time, committed=_confirmed(confirmed, row, now))
            yield last
        if row.get("status") != "INCOMPLETE":
            confirmed = now
        if final:
            utterance, confirmed, last = utterance + (last is not None), "", None
    if last:
        yield finished(last)


def _confirmed(before: str, row: dict[str, Any], now: str) -> int | None:
    """Return how many words are confirmed; None after a row without tail, since the recogniser may go on."""
    if row.get("status") is None and "unconfirmed_text" not in row:
        return None
    return len(WORD.findall(before if row.get("status") == "INCOMPLETE" else now))


def _row(text: str) -> dict[str, Any]:
    row = json_object(text, tuple(_FIELDS))
    check_fields(row, _FIELDS, ("emission_time",), "a row")
    if "text" not in row and "is_final" not in row:
        raise InputError("text must be given unless is_final is")
    return row


def _with_new(confirmed: str, row: dict[str, Any]) -> str:
    """Return the confirmed text including the row's."""
    text = row.get("text", "")
    ends_translation = row.get("status") is not None and row.get("is_final", False)
    return joined(confirmed, text) if ends_translation else confirmed + text
