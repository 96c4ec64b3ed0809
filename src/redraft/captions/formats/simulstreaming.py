"""Read the rows of SimulStreaming (ufal)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redraft.captions.events import FLAG, TEXT, Failure, Field, Update, is_seconds
from redraft.captions.formats.jsonl import check_fields, json_object, parsed
from redraft.captions.formats.read import Item, LineSource, finished, not_empty, received
from redraft.captions.words import WORD, joined
from redraft.errors import InputError

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
