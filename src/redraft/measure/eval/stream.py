"""Streams to measure on: utterances with their updates and references; they can be saved, replayed and hashed.

``talk.jsonl`` holds the updates as ``redraft translate --input jsonl`` reads them.  What else is known of a stream is
in ``talk.references.jsonl`` beside it: a line with its name and seed, then one for each utterance that has references
or a place in a recording.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from redraft.captions.events import Failure, Update, is_text, is_whole
from redraft.captions.formats.parse import (
    MAX_LINE_BYTES,
    NAME,
    TEXT,
    TIME,
    Field,
    LineSource,
    check_fields,
    decoded,
    json_object,
    refuse_unknown,
)
from redraft.captions.formats.read import Item, finished, parse_update, read_jsonl
from redraft.captions.formats.simulstreaming import read_simulstreaming
from redraft.errors import InputError, OptionError
from redraft.measure.eval.signature import text_hash

#: Forms of files that a stream is loaded from.
FORMS: dict[str, Callable[[LineSource], Iterator[Item]]] = {"jsonl": read_jsonl, "simulstreaming": read_simulstreaming}

Row: TypeAlias = dict[str, Any]


def _are_references(value: object) -> bool:
    return isinstance(value, Mapping) and all(is_text(part) for pair in value.items() for part in pair)


_OF_STREAM: dict[str, Field] = {
    "name": TEXT,
    "seed": (lambda value: value is None or is_whole(value), "a whole number or null"),
}
_OF_SEGMENT: dict[str, Field] = {
    "references": (_are_references, "texts by language"),
    "start": TIME,
    "end": TIME,
    "recording": TEXT,
}


@dataclass(frozen=True, slots=True)
class Segment:
    """One utterance.  Its updates are kept as a reader would give them: no space around texts, times as floats.

    Attributes:
        updates: one or more of the same utterance, with growing ``seq``; the last one and no other is final.
        references: translations of the final text by language, a primary subtag such as ``de``; may be empty.
        start, end: when it was spoken, in seconds from the start of the recording; None if unknown.
        recording: name of the recording that it is part of; empty if there is none.

    Raises:
        InputError: a field has a value that is not allowed.
    """

    updates: tuple[Update, ...]
    references: Mapping[str, str] = field(default_factory=dict, hash=False)
    start: float | None = None
    end: float | None = None
    recording: str = ""

    def __post_init__(self) -> None:
        updates = tuple(parse_update(asdict(update)) for update in self.updates)
        if [update.final for update in updates] != [False] * (len(updates) - 1) + [True]:
            raise InputError("updates of a segment must be one or more, of which the last and no other is final")
        if any(after.utterance != before.utterance or after.seq <= before.seq for before, after in pairwise(updates)):
            raise InputError("updates of a segment must have one name of an utterance and a growing seq")
        check_fields({name: getattr(self, name) for name in _OF_SEGMENT}, _OF_SEGMENT, (), "a segment")
        start, end = (None if time is None else float(time) for time in (self.start, self.end))
        if start is not None and end is not None and end < start:
            raise InputError(f"end of utterance {updates[0].utterance!r} must be {start} or more, its start, not {end}")
        object.__setattr__(self, "updates", updates)
        object.__setattr__(self, "references", dict(self.references))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    @property
    def source(self) -> str:
        """The text of the final update."""
        return self.updates[-1].text

    @property
    def utterance(self) -> str:
        """Its name in the stream."""
        return self.updates[-1].utterance


@dataclass(frozen=True, slots=True)
class Stream:
    """A row of utterances, each with a name of its own.

    Attributes:
        name: what it was made of, such as ``flores200.devtest``.
        segments: one or more.
        seed: of what is random in it; None where nothing is.

    Raises:
        InputError: there is no segment, a name comes twice, or a field has a value that is not allowed.
    """

    name: str
    segments: tuple[Segment, ...]
    seed: int | None = None

    def __post_init__(self) -> None:
        check_fields({"name": self.name, "seed": self.seed}, _OF_STREAM, (), "a stream")
        names = [segment.utterance for segment in self.segments]
        if not names or len(set(names)) < len(names):
            raise InputError("segments of a stream must be one or more, each with an utterance of its own name")
        object.__setattr__(self, "segments", tuple(self.segments))

    @property
    def updates(self) -> tuple[Update, ...]:
        """The updates of all segments, in order."""
        return tuple(update for segment in self.segments for update in segment.updates)

    @property
    def hash(self) -> str:
        """12 hex digits over all segments: updates with their times, references, places in a recording."""
        return text_hash(json.dumps([asdict(segment) for segment in self.segments], sort_keys=True))

    def save(self, path: Path | str) -> None:
        """Write the updates to ``path``, and beside it what else there is to say.

        Raises:
            OSError: a file cannot be written.
        """
        path = Path(path)
        header, notes = {"name": self.name, "seed": self.seed}, [*_notes(self.segments)]
        _write(path, map(asdict, self.updates))
        if notes or header != _header(path):
            _write(beside(path), [header, *notes])
        else:
            beside(path).unlink(missing_ok=True)  # of another stream that was saved here before

    @classmethod
    def load(cls, path: Path | str, form: str = "jsonl") -> Stream:
        """Read a stream that was saved, or a file of one's own; without a file beside it, it is named after the file.

        An utterance without a final update gets one: its last text again, with the next ``seq``.  Updates of utterances
        that alternate are put together, as if each utterance had waited for the end of the one before.

        Args:
            path: the file with the updates.
            form: ``jsonl``, or ``simulstreaming`` for what SimulStreaming prints.

        Raises:
            InputError: a file cannot be read, or a line of it cannot be used; the message has its number.
            OptionError: ``form`` is neither.
        """
        path = Path(path)
        if form not in FORMS:
            raise OptionError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
        updates: dict[str, list[Update]] = {}
        for update in _updates(path, FORMS[form]):
            updates.setdefault(update.utterance, []).append(update)
        header, notes = _read_beside(path)
        unknown = notes.keys() - updates.keys()
        if unknown:
            raise InputError(f"{beside(path)}: utterance {min(unknown)!r} must be one of {path}")
        segments = (Segment(_ended(found), **notes.get(utterance, {})) for utterance, found in updates.items())
        return cls(header["name"], tuple(segments), header.get("seed"))


def beside(path: Path) -> Path:
    """The file of what else is known of the stream in ``path``."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".references.jsonl")


def _header(path: Path) -> Row:
    """Name and seed of a stream of which nothing more is known than its file."""
    return {"name": path.name.removesuffix(".jsonl"), "seed": None}


def _notes(segments: Iterable[Segment]) -> Iterator[Row]:
    """What is known of segments besides their updates."""
    for segment in segments:
        known = {name: getattr(segment, name) for name in _OF_SEGMENT}
        known = {name: value for name, value in known.items() if value not in (None, "", {})}
        if known:
            yield {"utterance": segment.utterance, **known}


def _write(path: Path, rows: Iterable[Row]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def _updates(path: Path, reader: Callable[[LineSource], Iterator[Item]]) -> Iterator[Update]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"stream file {str(path)!r} cannot be read: {error.strerror}") from error
    with file:
        for item in reader(file):
            if isinstance(item, Failure):
                raise InputError(f"{path}: {item.message}", item.line)
            yield item


def _ended(updates: Sequence[Update]) -> tuple[Update, ...]:
    """The updates of an utterance, the last one final."""
    return (*updates,) if updates[-1].final else (*updates, finished(updates[-1]))


def _read_beside(path: Path) -> tuple[Row, dict[str, Row]]:
    """Name and seed, and the fields of segments by utterance."""
    if not beside(path).exists():
        return _header(path), {}
    rows = [*_rows(beside(path))]
    if not rows:
        raise InputError(f"{beside(path)}: the first line must hold {', '.join(_OF_STREAM)}, but the file is empty")
    return rows[0], {str(note.pop("utterance")): note for note in rows[1:]}


def _rows(path: Path) -> Iterator[Row]:
    """The lines of the file beside a stream: the first one of the stream, the others of segments."""
    with path.open("rb") as file:
        for number, text in decoded(file, MAX_LINE_BYTES):
            known, needed = (_OF_STREAM, "name") if number == 1 else ({"utterance": NAME, **_OF_SEGMENT}, "utterance")
            if isinstance(text, Failure):
                raise InputError(f"{path}: {text.message}", number)
            try:
                row = json_object(text, tuple(known))
                refuse_unknown(row, known)
                check_fields(row, known, (needed,), "the line")
            except InputError as error:
                raise InputError(f"{path}: {error}", number) from None
            yield row
