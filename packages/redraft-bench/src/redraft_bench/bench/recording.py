"""The input of a replay: the records of a benchmark whose passes were recorded one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.backends import costs
from redraft.errors import InputError
from redraft_bench.bench.peers import PEERS
from redraft_bench.eval.record import PassRecord, Record, read_records


@dataclass(frozen=True, slots=True)
class Recording:
    """The records to replay.

    Attributes:
        records: name of a contender -> its records; all contenders have the same segments.
        left_out: for each contender that cannot be replayed, a sentence that says why.
    """

    records: Mapping[str, Sequence[Record]]
    left_out: Sequence[str] = ()

    @property
    def context_length(self) -> int:
        """Number of ids that a slot must hold for the passes and for the cost curve."""
        passes = (each for records in self.records.values() for record in records for each in passes_of(record))
        return max([costs.CONTEXT + costs.SIZES[-1], *(each.cached + each.new for each in passes)])


def read_recording(path: Path, limit: int = 0) -> Recording:
    """Read the contenders of a records file that can be replayed.

    Of a draft model's passes only the number is recorded, so contenders with a draft model are left out.

    Raises:
        InputError: the file is not a records file, or nothing in it can be replayed.
    """
    found: dict[str, dict[int, Record]] = {}
    for record in read_records(path):
        found.setdefault(record.contender, {})[record.segment] = record
    reasons = {name: _unfit(records.values()) for name, records in found.items()}
    fit = {name: records for name, records in found.items() if not reasons[name]}
    common = set.intersection(*(set(records) for records in fit.values())) if fit else set()
    segments = sorted(common)[: limit or None]
    if not segments:
        raise InputError(f"{str(path)!r} contains no segment of a method whose passes can be replayed")
    for record in (records[number] for records in fit.values() for number in segments):
        _check(record, path)
    left_out = [f"{name} is left out, since {reason}" for name, reason in reasons.items() if reason]
    return Recording({name: [records[number] for number in segments] for name, records in fit.items()}, left_out)


def _unfit(records: Iterable[Record]) -> str:
    """Return why a contender cannot be replayed; empty if it can."""
    records = list(records)
    if any(record.contender.partition(",")[0] in PEERS for record in records):
        return "it is another library's, and its passes would be run on this one"
    steps = [step for record in records for step in record.steps]
    if any(step.draft_passes for step in steps):
        return "the passes of a small model are recorded by number only"
    return "" if any(step.passes for step in steps) else "its passes are not recorded"


def _check(record: Record, path: Path) -> None:
    """Raise `InputError` for passes that reuse more ids than any cache could have held."""
    passes = passes_of(record)
    held = passes[0].cached if passes else 0
    for each in passes:
        length = each.cached + each.new - each.nodes
        cached = 0 <= each.cached <= min(held, length - each.prompt_rows)
        if not (cached and 0 <= each.accepted <= each.nodes and each.prompt_rows > 0):
            raise InputError(
                f"{str(path)!r}: the passes of segment {record.segment} by {record.contender!r} do not follow from "
                f"one another, first at {tuple(each)}"
            )
        held = length + each.nodes


def passes_of(record: Record) -> list[PassRecord]:
    """Return the target passes of a segment, for all updates."""
    return [each for step in record.steps for each in step.passes]
