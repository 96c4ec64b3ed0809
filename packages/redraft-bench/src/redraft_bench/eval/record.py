"""The result of a run: one record for each segment and contender, as a line of JSON.

Everything in a record except its times is reproducible, so two runs can be compared token by token
(`Record.without_times`).  All figures of the tables are computed from records, so a table can be made again later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from redraft.errors import InputError


class PassRecord(NamedTuple):
    """One target pass.

    Attributes:
        cached: number of ids in the cache before it.
        new: number of ids that it processed, including the draft; its expected cost is T(new).
        nodes: number of draft tokens.
        depth: length of the longest path of the draft.
        accepted: number of draft tokens accepted, among them a drafted end token.
        prompt_rows: number of prefix rows requested, normally 1.
    """

    cached: int
    new: int
    nodes: int
    depth: int
    accepted: int
    prompt_rows: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one update.

    Attributes:
        seq: number of the update.
        source: text of the update.
        final: whether the update was final.
        time: time of the update in seconds.
        prompt: number of prompt ids.
        tokens: ids of the output, without the end token.
        text: the shown text.
        unstable: the hidden text.
        finished: whether the model ended the output.
        seconds: wall time of the update.
        model_seconds: part of ``seconds`` spent in passes.
        passes: target passes of the output; empty if the source was unchanged.
        draft_passes: number of passes of the draft model.
        erased: retracted tokens of the whole output, and of the shown text (`redraft_bench.eval.measure`).
        length: tokens of the whole output and of the shown text, tokenized by the model.
        cpu_seconds: processor time of the update, in all threads; 0 if not measured.
        second: number of target passes of other decodings of the text (`redraft_bench.eval.meter`).
        settled: number of drafted tokens that no pass has verified.
        end_drafted: whether the end token was drafted, and accepted.
        first_seconds: part of ``model_seconds`` spent in the first pass, which reads the prompt.
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
    cpu_seconds: float = 0.0
    second: int = 0
    settled: int = 0
    end_drafted: bool = False
    first_seconds: float = 0.0

    def without_times(self) -> Step:
        """Return the step with all times set to zero."""
        return replace(self, seconds=0.0, model_seconds=0.0, cpu_seconds=0.0, first_seconds=0.0)

    @property
    def decoded(self) -> bool:
        """Whether the text was decoded; the passes may all be those of a draft model."""
        return bool(self.passes or self.settled)

    @property
    def drafted(self) -> int:
        """Draft tokens proposed, along the longest path of each tree."""
        return self.settled + sum(each.depth for each in self.passes)

    @property
    def accepted(self) -> int:
        """Draft tokens accepted, among them a drafted end token; an output cut as a loop has lost some."""
        return min(len(self.tokens) + self.end_drafted, self.settled + sum(each.accepted for each in self.passes))


#: Fields of a step that differ between two runs.
_TIMES = ("seconds", "model_seconds", "cpu_seconds", "first_seconds")


@dataclass(frozen=True, slots=True)
class Record:
    """One segment by one contender.

    Attributes:
        segment: index of the segment in the stream.
        contender: name of the contender, including the language.
        steps: one per update, the final one last.
        failures: error messages.
    """

    segment: int
    utterance: str
    contender: str
    steps: tuple[Step, ...]
    failures: tuple[str, ...] = ()

    @property
    def translation(self) -> str:
        """Text of the final caption."""
        return self.steps[-1].text if self.steps else ""

    @property
    def seconds(self) -> float:
        """Wall time of all updates."""
        return sum(step.seconds for step in self.steps)

    def without_times(self) -> Record:
        """Return the record with all times set to zero; it is equal for two runs with the same seed."""
        return replace(self, steps=tuple(step.without_times() for step in self.steps))

    def to_json(self) -> str:
        """Return the record as one line."""
        fields = asdict(self)
        for step in fields["steps"]:
            for name in _TIMES:
                step[name] = round(step[name], 6)
            step["passes"] = [list(each) for each in step["passes"]]
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Parse a line.

        Raises:
            InputError: the line is not a record.
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
    """Append records to a file, one per line."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(record.to_json() + "\n" for record in records)


def replace_records(path: Path, records: Iterable[Record]) -> None:
    """Write a file of records in one step, so that a run that is stopped leaves the old file or the new one."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    write_records(part, records)
    part.replace(path)


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file; an incomplete last line is ignored.

    Raises:
        InputError: another line is not a record; the message has its number.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                yield Record.from_json(line)
            except InputError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
