"""The work of live speech as it was recorded: what every update of a talk asked of the model, by method."""

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

#: The records that ship: the demo talk into German with the demo model.
SHIPPED = "talk.records.jsonl.xz"


@dataclass(frozen=True)
class Work:
    """What one method had to do for a stream in one language.

    Attributes:
        method: its name.
        records: one for each segment, with at least one pass in all.
    """

    method: str
    records: tuple[Record, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What each update came to."""
        return tuple(step for record in self.records for step in record.steps)

    @cached_property
    def passes(self) -> float:
        """Passes of an update, on average."""
        return fmean(len(step.passes) for step in self.steps)

    @cached_property
    def tokens(self) -> float:
        """New tokens of a pass, on average."""
        return fmean(each.new for each in self._all)

    @cached_property
    def cached(self) -> float:
        """Tokens in the cache before a pass, on average."""
        return fmean(each.cached for each in self._all)

    @cached_property
    def longest(self) -> int:
        """The most tokens that the cache had to hold."""
        return max(each.cached + each.new for each in self._all)

    @cached_property
    def host(self) -> float:
        """Seconds of an update outside the model, for each of its passes; the median, since other programs disturb."""
        return median((each.seconds - each.model_seconds) / len(each.passes) for each in self.steps if each.passes)

    @cached_property
    def _all(self) -> tuple[PassRecord, ...]:
        return tuple(each for step in self.steps for each in step.passes)

    def passes_quantile(self, share: float) -> int:
        """The number of passes that this share of the updates, 0-1, does not exceed."""
        ordered = sorted(len(step.passes) for step in self.steps)
        return ordered[min(len(ordered), math.ceil(share * len(ordered))) - 1]


@dataclass(frozen=True)
class Trace:
    """A talk and the work that it was.

    Attributes:
        works: by method, of the same segments.
        source: where it is from, for the list of assumptions.
    """

    works: Mapping[str, Work]
    source: str

    def work(self, method: str) -> Work:
        """The work of a method.

        Raises:
            OptionError: it was not recorded; the message lists the methods that were.
        """
        if method not in self.works:
            raise OptionError(f"method must be one of {', '.join(self.works)}, which were recorded, not {method!r}")
        return self.works[method]

    def script(self, words_per_second: float) -> Script:
        """The talk at a pace; updates come as in a load test of it."""
        return Script(self._stream, words_per_second)

    @cached_property
    def updates_per_word(self) -> float:
        """Updates of the talk for each of its words."""
        segments = self._stream.segments
        return sum(len(each.updates) for each in segments) / sum(words(each.source) for each in segments)

    @cached_property
    def _stream(self) -> Stream:
        records = next(iter(self.works.values())).records
        return Stream("trace", tuple(_segment(record) for record in records))


def _segment(record: Record) -> Segment:
    updates = (Update(record.utterance, step.seq, step.source, step.final, step.time) for step in record.steps)
    return Segment(tuple(updates))


def read_trace(path: Path) -> Trace:
    """The work in the records of ``redraft bench run``, a file that ends with ``.records.jsonl``.

    Of several lines of a table with the same method, the first counts.

    Raises:
        InputError: the file is no record, or its passes are not known.
    """
    recording = read_recording(path)
    works: dict[str, Work] = {}
    for contender, records in recording.records.items():
        method = contender.partition(",")[0].partition(" ")[0]
        works.setdefault(method, Work(method, tuple(records)))
    return Trace(works, f"recorded in {path.name}")


def shipped_trace() -> Trace:
    """The work of the demo talk."""
    with as_file(files(__package__) / SHIPPED) as path:
        trace = read_trace(path)
    return Trace(trace.works, "recorded with the demo model on the demo talk, to German")
