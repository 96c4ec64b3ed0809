"""What a run leaves behind: for every segment and contender one record, a line of JSON.

Everything in a record but its seconds is the same when the run is repeated, so two runs can be compared token by token
(`Record.without_times`).  All figures of the tables are computed from records, so a table can be made again later.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from redraft.errors import InputError


class PassRecord(NamedTuple):
    """One target pass.

    Attributes:
        cached: ids that the cache held already.
        new: ids that the pass ran over, draft included; T(new) is what it should cost.
        nodes: tokens of the draft tree.
        depth: its longest path.
        accepted: draft tokens kept.
        prompt_rows: rows of the prefix that were wanted; 1 as a rule.
    """

    cached: int
    new: int
    nodes: int
    depth: int
    accepted: int
    prompt_rows: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """What one update came to.

    Attributes:
        seq: that of the update.
        source: the update's text.
        final: whether the update was final.
        time: that of the update.
        prompt: ids of the prompt.
        tokens: ids of the output, the end token left out.
        text: what is shown.
        unstable: what the mask hides.
        finished: whether the model ended the output.
        seconds: wall time of the update; ``model_seconds`` of it were spent in passes.
        passes: target passes; none where the source had not changed.
        draft_passes: passes of the small model.
        erased: retracted tokens of the whole output, and of what was shown (`redraft.measure.eval.metrics`).
        length: tokens of the whole output and of what is shown, as text tokenized by the model.
    """

    seq: int
    source: str
    final: bool
    time: float | None
    prompt: int
    tokens: tuple[int, ...]
    text: str
    unstable: str
    finished: bool
    seconds: float
    model_seconds: float
    passes: tuple[PassRecord, ...]
    draft_passes: int = 0
    erased: tuple[int, int] = (0, 0)
    length: tuple[int, int] = (0, 0)

    @property
    def drafted(self) -> int:
        """Draft tokens proposed, along the longest path of each tree."""
        return sum(each.depth for each in self.passes)

    @property
    def accepted(self) -> int:
        """Draft tokens kept and still there at the end: an output that was cut as a loop has lost some."""
        return min(len(self.tokens), sum(each.accepted for each in self.passes))


@dataclass(frozen=True, slots=True)
class Record:
    """One segment by one contender.

    Attributes:
        segment: its number in the stream, from 0.
        contender: the title of the contender (`redraft.measure.eval.measure.Contender.title`), language included.
        steps: one an update, the final one last.
        failures: what was reported, in words.
    """

    segment: int
    utterance: str
    contender: str
    steps: tuple[Step, ...]
    failures: tuple[str, ...] = ()

    @property
    def translation(self) -> str:
        """The final caption."""
        return self.steps[-1].text if self.steps else ""

    @property
    def seconds(self) -> float:
        """Wall time of all updates."""
        return sum(step.seconds for step in self.steps)

    def without_times(self) -> Record:
        """The same record with all measured times zero: equal for two runs with the same seed."""
        return replace(self, steps=tuple(replace(step, seconds=0.0, model_seconds=0.0) for step in self.steps))

    def to_json(self) -> str:
        """One line."""
        fields = asdict(self)
        for step in fields["steps"]:
            step["seconds"], step["model_seconds"] = round(step["seconds"], 6), round(step["model_seconds"], 6)
            step["passes"] = [list(each) for each in step["passes"]]
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record of a line.

        Raises:
            InputError: the line is no record.
        """
        try:
            fields: dict[str, Any] = json.loads(line)
            steps = tuple(_step(step) for step in fields.pop("steps"))
            return cls(steps=steps, failures=tuple(fields.pop("failures")), **fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"this is not a record of a bench: {error!r} in {line[:60]!r}") from None


def _step(fields: dict[str, Any]) -> Step:
    fields["passes"] = tuple(PassRecord(*each) for each in fields["passes"])
    for name in ("tokens", "erased", "length"):
        fields[name] = tuple(fields[name])
    return Step(**fields)


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Add records to a file, one a line."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(record.to_json() + "\n" for record in records)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file; a last line that was cut off while it was written is left out.

    A file whose name ends in ``.xz`` is compressed.

    Raises:
        InputError: another line is no record; the message has its number.
    """
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                yield Record.from_json(line)
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
