"""From records to delays: when every unit of a final caption came to stand as it is on the display.

A unit is a word, or a character in languages that are written without spaces; spaces do not count.  What a caption has
in common with the one before it stands, everything behind that is erased and shown again, even where it is the same
again: so normalized erasure counts, and so do the deletions of simulstream's log.  What mask-k hides is not there.
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
from redraft.measure.eval.record import Record
from redraft.measure.eval.stream import Segment, Stream


@cache
def unit(language: str) -> str:
    """``word``, or ``char`` for a language that is written without spaces.

    Raises:
        OptionError: there is no such language.
    """
    return "word" if parse_language(language).spaced else "char"


def split(text: str, language: str) -> list[str]:
    """The units of a text."""
    return text.split() if unit(language) == "word" else [*"".join(text.split())]


def join(units: Sequence[str], language: str) -> str:
    """The text that units make, with a space between words."""
    return (" " if unit(language) == "word" else "").join(units)


@dataclass(frozen=True, slots=True)
class Change:
    """What one update did to the display: the units that it took from the end, and those that it put there."""

    erased: tuple[str, ...]
    added: tuple[str, ...]


def changes(record: Record, language: str) -> list[Change]:
    """What every update of a segment did to the display, which is empty before the first."""
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

    In a timed stream all times are seconds from the start of the recording.

    Attributes:
        timed: whether every update of the segment has a time; else delays are source words read.
        units: of the caption.
        delays: for each unit, how much of the source had been given when it was last changed.
        shown: the same, computation-aware: when the update was answered.  Updates are served one after the other, so
            an answer comes ``Step.seconds`` after the update, or after the answer before it if that is later.  Empty
            where the stream is not timed.
        arrivals, answers: the time of every update and of its answer; empty where the stream is not timed.
    """

    timed: bool
    units: tuple[str, ...]
    delays: tuple[float, ...]
    shown: tuple[float, ...] = ()
    arrivals: tuple[float, ...] = ()
    answers: tuple[float, ...] = ()


def pairs(records: Sequence[Record], stream: Stream) -> Iterator[tuple[Record, Segment]]:
    """Every record with its segment of the stream.

    Raises:
        InputError: a record is of another stream.
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
    """The delays of every record, in order.

    Args:
        records: of one contender, in the order of the stream.
        language: of the captions, as a tag.

    Raises:
        InputError: the records are of another stream.
        OptionError: there is no such language.
    """
    ready: dict[str, float] = defaultdict(float)
    found = []
    for record, segment in pairs(records, stream):
        arrivals = [step.time for step in record.steps if step.time is not None]
        if len(arrivals) < len(record.steps):
            found.append(_in_words(record, language))
        else:
            answers = _answers(record, arrivals, ready[segment.recording])
            ready[segment.recording] = answers[-1]
            found.append(_in_seconds(record, language, arrivals, answers))
    return found


def _answers(record: Record, arrivals: Sequence[float], ready: float) -> list[float]:
    """When each update is answered, if the last answer before the first comes at ``ready``."""
    answers = []
    for step, arrival in zip(record.steps, arrivals, strict=True):
        ready = max(arrival, ready) + step.seconds
        answers.append(ready)
    return answers


def _in_seconds(record: Record, language: str, arrivals: Sequence[float], answers: Sequence[float]) -> Delays:
    changed = _last_changed(record, language)
    return Delays(
        True,
        tuple(split(record.translation, language)),
        tuple(arrivals[update] for update in changed),
        tuple(answers[update] for update in changed),
        tuple(arrivals),
        tuple(answers),
    )


def _in_words(record: Record, language: str) -> Delays:
    read, counts = 0, []
    for step in record.steps:
        read = max(read, words(step.source))  # a source that shrinks has been heard all the same
        counts.append(float(read))
    changed = _last_changed(record, language)
    units = tuple(split(record.translation, language))
    return Delays(False, units, tuple(counts[update] for update in changed))


def words(text: str) -> int:
    """How many words a source has; a Chinese or Japanese character is one, as where streams are revealed by words."""
    return sum(1 for _ in WORD.finditer(text))


def _last_changed(record: Record, language: str) -> list[int]:
    """For every unit of the final caption the number of the update that changed it last."""
    found: list[int] = []
    for number, change in enumerate(changes(record, language)):
        del found[len(found) - len(change.erased) :]
        found += [number] * len(change.added)
    return found
