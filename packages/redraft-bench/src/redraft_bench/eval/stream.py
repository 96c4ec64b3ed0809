"""Streams to measure on: utterances with updates and references, which can be saved, loaded and hashed.

``talk.jsonl`` contains the updates in the format of ``redraft translate --input jsonl``.  Everything else is in
``talk.references.jsonl`` beside it: a line with the name, then a line for each utterance that has references or a
position in a recording.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from redraft.captions.events import TEXT, TIME, Failure, Field, Update, is_text
from redraft.captions.formats.read import check_fields, finished, not_empty, parse_update, read_jsonl
from redraft.captions.words import WORD
from redraft.errors import InputError
from redraft.signature import text_hash

Row: TypeAlias = dict[str, Any]


def _are_times(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(TIME[0](time) for time in value)


def _are_references(value: object) -> bool:
    return isinstance(value, Mapping) and all(is_text(part) for pair in value.items() for part in pair)


_OF_SEGMENT: dict[str, Field] = {
    "references": (_are_references, "texts by language"),
    "start": TIME,
    "end": TIME,
    "recording": TEXT,
    "ends": (_are_times, "times in seconds"),
}


@dataclass(frozen=True, slots=True)
class Segment:
    """One utterance.  Texts are stripped and times are floats, as a reader would return them.

    Attributes:
        updates: at least one, all of the same utterance, with ascending ``seq``; only the last one is final.
        references: primary subtag of a language, such as ``de`` -> translation of the final text; may be empty.
        start: start of speech in seconds from the start of the recording; None if unknown.
        end: end of speech, as ``start``.
        recording: name of its recording; empty if there is none.
        ends: when each word of the final text ends, as ``start`` (words are those of `redraft.captions.words`); empty
            if unknown.

    Raises:
        InputError: a field has an invalid value.
    """

    updates: tuple[Update, ...]
    references: Mapping[str, str] = field(default_factory=dict, hash=False)
    start: float | None = None
    end: float | None = None
    recording: str = ""
    ends: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        updates = tuple(parse_update(asdict(update)) for update in self.updates)
        if [update.final for update in updates] != [False] * (len(updates) - 1) + [True]:
            raise InputError("a segment must have at least one update, and only the last one must be final")
        if any(after.utterance != before.utterance or after.seq <= before.seq for before, after in pairwise(updates)):
            raise InputError("updates of a segment must have the same utterance and a growing seq")
        check_fields({name: getattr(self, name) for name in _OF_SEGMENT}, _OF_SEGMENT, (), "a segment")
        start, end = (None if time is None else float(time) for time in (self.start, self.end))
        if start is not None and end is not None and end < start:
            raise InputError(f"end of utterance {updates[0].utterance!r} must be {start} or more, its start, not {end}")
        words = sum(1 for _ in WORD.finditer(updates[-1].text))
        if self.ends and len(self.ends) != words:
            raise InputError(f"ends must be {words} times, one for each word of the final text, not {len(self.ends)}")
        object.__setattr__(self, "updates", updates)
        object.__setattr__(self, "ends", tuple(map(float, self.ends)))
        object.__setattr__(self, "references", dict(self.references))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    @property
    def source(self) -> str:
        """Text of the final update."""
        return self.updates[-1].text

    @property
    def utterance(self) -> str:
        """Name of the utterance in the stream."""
        return self.updates[-1].utterance


@dataclass(frozen=True, slots=True)
class Stream:
    """A sequence of utterances with unique names.

    Attributes:
        name: name of its data, such as ``flores200.devtest``.
        segments: at least one.

    Raises:
        InputError: there are no segments, or a name occurs twice.
    """

    name: str
    segments: tuple[Segment, ...]

    def __post_init__(self) -> None:
        names = [segment.utterance for segment in self.segments]
        if not names or len(set(names)) < len(names):
            raise InputError("a stream must have at least one segment, each with a different utterance")
        object.__setattr__(self, "segments", tuple(self.segments))

    @property
    def updates(self) -> tuple[Update, ...]:
        """The updates of all segments, in order."""
        return tuple(update for segment in self.segments for update in segment.updates)

    @property
    def hash(self) -> str:
        """12 hex digits over all segments: updates with times, references, positions in recordings, ends of words."""
        fields = [asdict(segment) for segment in self.segments]
        for each in fields:
            # Fields that earlier streams did not have count only where they say something.
            if not each["ends"]:
                del each["ends"]
            for update in each["updates"]:
                del update["goes_on"]  # the texts show it
                for name in ("speaker", "committed", "start", "language"):
                    if update[name] is None:
                        del update[name]
        return text_hash(json.dumps(fields, sort_keys=True))

    def save(self, path: Path | str) -> None:
        """Write the updates to ``path``, and everything else to a file beside it.

        Raises:
            OSError: a file cannot be written.
        """
        path = Path(path)
        _write(path, map(row_of, self.updates))
        _write(beside(path), [{"name": self.name}, *_notes(self.segments)])

    @classmethod
    def load(cls, path: Path | str) -> Stream:
        """Load a saved stream, or a file of your own.

        Without a file of references beside it, the stream is named after the file.  An utterance without a final update
        gets one: its last text with the next ``seq``.  Interleaved utterances are separated, in the order in which they
        start.

        Raises:
            InputError: a file cannot be read, or a line is invalid; the message has its number.
        """
        path = Path(path)
        updates: dict[str, list[Update]] = {}
        for update in _updates(path):
            updates.setdefault(update.utterance, []).append(update)
        name, notes = _read_beside(path)
        if unknown := notes.keys() - updates.keys():
            raise InputError(f"{beside(path)}: utterance {min(unknown)!r} must be one of {path}")
        try:
            return cls(name, tuple(Segment(_ended(found), **notes.get(each, {})) for each, found in updates.items()))
        except TypeError as error:  # a field that segments do not have
            raise InputError(f"{beside(path)}: {error}") from None


def beside(path: Path) -> Path:
    """Return the path of the file with references for the stream in ``path``."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".references.jsonl")


def row_of(update: Update) -> Row:
    """Return the fields of an update that are known, as files have them; readers take the others to be None."""
    fields = asdict(update)
    if not update.goes_on:
        del fields["goes_on"]
    return {name: value for name, value in fields.items() if value is not None}


def _notes(segments: Iterable[Segment]) -> Iterator[Row]:
    """Yield the fields of segments other than their updates."""
    for segment in segments:
        known = {name: getattr(segment, name) for name in _OF_SEGMENT}
        known = {name: value for name, value in known.items() if value not in (None, "", {}, ())}
        if known:
            yield {"utterance": segment.utterance, **known}


def _write(path: Path, rows: Iterable[Row]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def _updates(path: Path) -> Iterator[Update]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"stream file {str(path)!r} cannot be read: {error.strerror}") from error
    with file:
        for item in not_empty(read_jsonl(file)):
            if isinstance(item, Failure):
                raise InputError(f"{path}: {item.message}", item.line)
            yield item


def _ended(updates: Sequence[Update]) -> tuple[Update, ...]:
    """Return the updates of an utterance with the last one final."""
    return (*updates,) if updates[-1].final else (*updates, finished(updates[-1]))


def _read_beside(path: Path) -> tuple[str, dict[str, Row]]:
    """Return the stream's name, and utterance -> fields of its segment."""
    file = beside(path)
    if not file.exists():
        return path.name.removesuffix(".jsonl"), {}
    try:
        header, *rows = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        return str(header["name"]), {str(row.pop("utterance")): row for row in rows}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{file} must have a JSON object with the name, then one with each utterance: {error}"
        ) from None
