"""Recorded work of live speech: the requests of every update of a talk to the model, by method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from statistics import fmean, median

from redraft.captions.events import Update
from redraft.errors import OptionError
from redraft.measure.bench.recording import read_recording
from redraft.measure.eval.delays import words
from redraft.measure.eval.record import PassRecord, Record, Step
from redraft.measure.eval.stream import Segment, Stream
from redraft.measure.loadtest.script import Script

#: The shipped records: the demo talk into German with the demo model.
SHIPPED = "talk.records.jsonl.xz"


@dataclass(frozen=True)
class Work:
    """The work of one method for a stream in one language.

    Attributes:
        method: name of the method.
        records: one per segment, with at least one pass in total.
    """

    method: str
    records: tuple[Record, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The result of each update."""
        return tuple(step for record in self.records for step in record.steps)

    @cached_property
    def passes(self) -> float:
        """Average number of passes per update."""
        return fmean(len(step.passes) for step in self.steps)

    @cached_property
    def tokens(self) -> float:
        """Average number of new tokens per pass."""
        return fmean(each.new for each in self._all)

    @cached_property
    def cached(self) -> float:
        """Average number of tokens in the cache before a pass."""
        return fmean(each.cached for each in self._all)

    @cached_property
    def host(self) -> float:
        """Seconds of an update outside the model per pass; the median, because of other programs."""
        return median((each.seconds - each.model_seconds) / len(each.passes) for each in self.steps if each.passes)

    @cached_property
    def _all(self) -> tuple[PassRecord, ...]:
        return tuple(each for step in self.steps for each in step.passes)

    def passes_quantile(self, share: float) -> int:
        """Return the number of passes that this share of the updates, 0-1, does not exceed."""
        ordered = sorted(len(step.passes) for step in self.steps)
        return ordered[min(len(ordered), math.ceil(share * len(ordered))) - 1]


@dataclass(frozen=True)
class RecordedWork:
    """A talk and its work.

    Attributes:
        works: by method, all of the same segments.
        source: where it comes from, for the list of assumptions.
    """

    works: Mapping[str, Work]
    source: str

    def work(self, method: str) -> Work:
        """Return the work of a method.

        Raises:
            OptionError: the method was not recorded; the message lists the recorded methods.
        """
        if method not in self.works:
            raise OptionError(f"method must be one of {', '.join(self.works)}, which were recorded, not {method!r}")
        return self.works[method]

    def script(self, words_per_second: float) -> Script:
        """Return the talk at a pace, with updates as in a load test."""
        return Script(self._stream, words_per_second)

    @cached_property
    def updates_per_word(self) -> float:
        """Number of updates of the talk per word."""
        segments = self._stream.segments
        return sum(len(each.updates) for each in segments) / sum(words(each.source) for each in segments)

    @cached_property
    def _stream(self) -> Stream:
        records = next(iter(self.works.values())).records
        return Stream("trace", tuple(_segment(record) for record in records))


def _segment(record: Record) -> Segment:
    updates = (Update(record.utterance, step.seq, step.source, step.final, step.time) for step in record.steps)
    return Segment(tuple(updates))


def read_trace(path: Path) -> RecordedWork:
    """Read the work from the records of ``redraft bench run``, a file that ends with ``.records.jsonl``.

    Of several lines of a table with the same method, the first is used.

    Raises:
        InputError: the file has no valid records, or lacks their passes.
    """
    recording = read_recording(path)
    works: dict[str, Work] = {}
    for contender, records in recording.records.items():
        method = contender.partition(",")[0].partition(" ")[0]
        works.setdefault(method, Work(method, tuple(records)))
    return RecordedWork(works, f"recorded in {path.name}")


def shipped_trace() -> RecordedWork:
    """Return the work of the demo talk."""
    with as_file(files(__package__) / SHIPPED) as path:
        trace = read_trace(path)
    return RecordedWork(trace.works, "recorded with the demo model on the demo talk, to German")
