"""Read logs of other systems as records, to compute the same figures as for a run of Redraft.

`instances.log` is written by SimulEval and read by OmniSTEval: a line per segment or recording, with a delay for each
word or character.  simulstream's `metrics.jsonl` has a line per update, with the added and the deleted text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from redraft.captions.events import Update, is_number
from redraft.captions.languages import parse_language
from redraft.captions.words import WORD
from redraft.errors import InputError
from redraft_bench.eval.delays import join, split, words
from redraft_bench.eval.record import Record, Step
from redraft_bench.eval.stream import Segment, Stream


def read_log(path: Path, language: str, references: Sequence[str] | None = None) -> tuple[list[Record], Stream]:
    """Read a log; return its records and their stream.

    Each unit of a segment in `instances.log` becomes an update, since each has its own time.

    Args:
        path: a log of either kind.
        references: a reference for each segment, in order; None uses the log's references, if any.

    Raises:
        InputError: a line is invalid, or the numbers of references and segments differ.
    """
    code = parse_language(language).code
    rows = [*_rows(path)]
    if any("generated_tokens" in row for _place, row in rows):
        found = [*_recordings(rows, language)]
    else:
        found = [_instance(place, number, row, language) for number, (place, row) in enumerate(rows)]
    if references is not None and len(references) != len(found):
        raise InputError(
            f"references must be as many as the segments of {path.name}, {len(found)}: not {len(references)}"
        )
    records, segments = [], []
    for number, (steps, times, reference) in enumerate(found):
        name = str(number)
        text = reference if references is None else references[number]
        updates = tuple(Update(name, step.seq, step.source, step.final, step.time) for step in steps)
        start, end = times
        segments.append(Segment(updates, {} if text is None else {code: text}, start, end, recording=name))
        records.append(Record(number, name, path.name, steps))
    if not records:
        raise InputError(f"{path} contains no segment")
    return records, Stream(path.name, tuple(segments))


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        InputError: it cannot be read as UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


_Found = tuple[tuple[Step, ...], tuple[float | None, float | None], str | None]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).splitlines(), 1):
        place = f"{path.name}, line {number}"
        try:
            row = json.loads(line)
        except ValueError:
            raise InputError(f"{place}: this is not valid JSON") from None
        if not isinstance(row, dict):
            raise InputError(f"{place}: a line must be an object")
        yield place, row


def _step(number: int, time: float | None, text: str, *, source: str = "", seconds: float = 0.0, final: bool) -> Step:
    """Make a step of which only the shown text is known."""
    return Step(number, source, final, time, 0, (), text, "", True, seconds, 0.0, ())


def _instance(place: str, number: int, row: dict[str, Any], language: str) -> _Found:
    """Read a line of `instances.log`.

    Delays are in source words if the source is a text of ``source_length`` words, otherwise in milliseconds.
    """
    if not isinstance(row.get("prediction"), str):
        raise InputError(f"{place}: prediction must be a string")
    units = split(row["prediction"], language)
    delays = _numbers(place, row, "delays", row["prediction"], units)
    elapsed = _numbers(place, row, "elapsed", row["prediction"], units) if row.get("elapsed") else delays
    length, source = row.get("source_length"), row.get("source")
    if not is_number(length):
        raise InputError(f"{place}: source_length must be a number")
    reference = row.get("reference")
    text = source if isinstance(source, str) and length in {words(source), len(source.split())} else None
    begun = (join(units[: count + 1], language) for count in range(len(units)))
    ends = [*zip(delays, elapsed, begun, strict=True)] or [(float(length), float(length), "")]
    steps, answered = [], 0.0
    for count, (delay, when, shown) in enumerate(ends):
        if text is not None:
            steps.append(_step(count, None, shown, source=_first_words(text, int(delay)), final=False))
            continue
        seconds = max(0.0, when / 1000 - max(delay / 1000, answered))
        answered = max(delay / 1000, answered) + seconds
        steps.append(_step(count, delay / 1000, shown, seconds=seconds, final=count == len(ends) - 1))
    if text is not None:  # the rest of the source was read, even if it changed nothing
        steps.append(_step(len(ends), None, ends[-1][2], source=text, final=True))
    times = (None, None) if text is not None else (0.0, length / 1000)
    return tuple(steps), times, reference if isinstance(reference, str) else None


def _first_words(text: str, count: int) -> str:
    ends = [word.end() for word in WORD.finditer(text)][:count]
    return text[: ends[-1]] if ends else ""


def _numbers(place: str, row: dict[str, Any], field: str, text: str, units: Sequence[str]) -> list[float]:
    """Return a number per unit; a log of characters may include numbers for spaces."""
    values = row.get(field)
    if not (isinstance(values, list) and all(map(is_number, values))):
        raise InputError(f"{place}: {field} must be a list of numbers")
    if len(values) == len(text) != len(units) and len(units) == len("".join(text.split())):
        values = [value for value, character in zip(values, text, strict=True) if not character.isspace()]
    if len(values) != len(units):
        raise InputError(f"{place}: {field} must have a number for each of the {len(units)} units, not {len(values)}")
    return [float(value) for value in values]


def _recordings(rows: Sequence[tuple[str, dict[str, Any]]], language: str) -> Iterator[_Found]:
    """Yield the recordings of simulstream's log."""
    updates: dict[object, list[tuple[str, dict[str, Any]]]] = {}
    for place, row in rows:
        if "generated_tokens" in row:
            updates.setdefault(row.get("id"), []).append((place, row))
    for found in updates.values():
        shown: list[str] = []
        steps = []
        for number, (place, row) in enumerate(found):
            try:
                erased, added = row["deleted_tokens"], row["generated_tokens"]
                time, seconds = float(row["total_audio_processed"]), float(row["computation_time"])
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{place}: this is not a simulstream update ({error!r})") from None
            shown = [*shown[: len(shown) - len(erased)], *added]
            text = (
                "".join(shown).replace("\u2581", " ").strip() if "\u2581" in "".join(shown) else join(shown, language)
            )
            steps.append(_step(number, time, text, seconds=seconds, final=number == len(found) - 1))
        yield tuple(steps), (0.0, steps[-1].time), None
