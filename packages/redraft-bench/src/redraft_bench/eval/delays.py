"""Compute delays from records: when each unit of a final caption last changed on the display.

A unit is a word or, in languages written without spaces, a character (spaces are not counted).  The prefix that a
caption shares with the previous one is stable; everything after it counts as erased and shown again, even if the text
is the same.  Normalized erasure follows the same rule.  Text hidden by mask-k is not shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from redraft.captions.languages import parse_language
from redraft.captions.words import WORD
from redraft.decoding.types import common_prefix
from redraft.errors import InputError
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Segment, Stream


@cache
def unit(language: str) -> str:
    """Return ``word``, or ``char`` for a language written without spaces."""
    return "word" if parse_language(language).spaced else "char"


def split(text: str, language: str) -> list[str]:
    """Split a text into units."""
    return text.split() if unit(language) == "word" else [*"".join(text.split())]


def join(units: Sequence[str], language: str) -> str:
    """Join units to a text, with spaces between words."""
    return (" " if unit(language) == "word" else "").join(units)


@dataclass(frozen=True, slots=True)
class Change:
    """What an update changed on the display: the units removed from the end, and those added."""

    erased: tuple[str, ...]
    added: tuple[str, ...]


def changes(record: Record, language: str) -> list[Change]:
    """Return the change on the display for each update of a segment; the display is empty before the first."""
    found, shown = [], list[str]()
    for step in record.steps:
        after = split(step.text, language)
        kept = common_prefix(shown, after)
        found.append(Change(tuple(shown[kept:]), tuple(after[kept:])))
        shown = after
    return found


@dataclass(frozen=True, slots=True)
class Delays:
    """The final caption of a segment with its delays.

    In a timed stream, all times are seconds from the start of the recording.

    Attributes:
        timed: whether every update of the segment has a time; otherwise delays are in source words.
        units: the caption's units.
        delays: for each unit, how much of the source had been read when the unit last changed.
        shown: the computation-aware delays: when that update was answered.  Updates are answered one after the other,
            so an answer comes ``Step.seconds`` after the update or, if later, after the previous answer.  Empty if
            untimed.
    """

    timed: bool
    units: tuple[str, ...]
    delays: tuple[float, ...]
    shown: tuple[float, ...] = ()


def pairs(records: Sequence[Record], stream: Stream) -> Iterator[tuple[Record, Segment]]:
    """Yield each record with its segment of the stream.

    Raises:
        InputError: a record is from another stream.
    """
    for record in records:
        segment = stream.segments[record.segment] if record.segment < len(stream.segments) else None
        if segment is None or segment.utterance != record.utterance:
            raise InputError(
                f"records must be of the stream {stream.name!r}, which has no utterance {record.utterance!r} as its "
                f"segment {record.segment}"
            )
        yield record, segment


def delays(records: Sequence[Record], stream: Stream, language: str) -> list[Delays]:
    """Compute the delays of each record, in order."""
    ready: dict[str, float] = defaultdict(float)
    found = []
    for record, segment in pairs(records, stream):
        arrivals = [step.time for step in record.steps if step.time is not None]
        if len(arrivals) < len(record.steps):
            found.append(_in_words(record, language))
            continue
        answers = []
        for step, arrival in zip(record.steps, arrivals, strict=True):
            # busy with earlier updates until then
            ready[segment.recording] = max(arrival, ready[segment.recording]) + step.seconds
            answers.append(ready[segment.recording])
        changed, units = _last_changed(record, language), tuple(split(record.translation, language))
        times = (tuple(of[update] for update in changed) for of in (arrivals, answers))
        found.append(Delays(True, units, *times))
    return found


def _in_words(record: Record, language: str) -> Delays:
    read, counts = 0, []
    for step in record.steps:
        read = max(read, words(step.source))  # words removed from the source count as read
        counts.append(float(read))
    changed = _last_changed(record, language)
    units = tuple(split(record.translation, language))
    return Delays(False, units, tuple(counts[update] for update in changed))


def words(text: str) -> int:
    """Count the words of a source; a Chinese or Japanese character counts as one, as in streams revealed by words."""
    return sum(1 for _ in WORD.finditer(text))


def _last_changed(record: Record, language: str) -> list[int]:
    """Return, for each unit of the final caption, the number of the update that last changed it."""
    found: list[int] = []
    for number, change in enumerate(changes(record, language)):
        del found[len(found) - len(change.erased) :]
        found += [number] * len(change.added)
    return found
