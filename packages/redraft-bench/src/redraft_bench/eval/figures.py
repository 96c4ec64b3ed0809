"""Compute the figures of a table from records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from redraft.decoding.backend import CostCurve
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.limit import distance, tails
from redraft_bench.eval.record import Record, Step

#: A figure of a row: text, a number, or None if not measured.
Figure: TypeAlias = str | int | float | None
Row: TypeAlias = dict[str, Figure]


@dataclass(frozen=True, slots=True)
class TableLine:
    """A contender with its records; all lines of a table have the same segments."""

    contender: Contender
    records: Sequence[Record]

    @property
    def steps(self) -> list[Step]:
        """All updates of all segments."""
        return [step for record in self.records for step in record.steps]

    @property
    def tokens(self) -> int:
        """Output tokens of all updates that were decoded, without end tokens."""
        return sum(len(step.tokens) for step in self.steps if step.decoded)

    @property
    def ends(self) -> int:
        """Number of end tokens."""
        return sum(step.finished for step in self.steps if step.decoded)

    @property
    def seconds(self) -> float:
        """Wall time of all updates."""
        return sum(record.seconds for record in self.records)

    @property
    def cpu_seconds(self) -> float:
        """Processor time of all updates; 0 if not measured."""
        return sum(step.cpu_seconds for step in self.steps)

    @property
    def passes(self) -> int:
        """Number of target passes, without those of second decodings."""
        return sum(len(step.passes) for step in self.steps)

    @property
    def positions(self) -> int:
        """Number of ids that the target passes have read; the FLOPs of a pass are proportional to it.

        0 if unknown: of the hypotheses of a beam, a backend computes only what is new.
        """
        passes = [each for step in self.steps for each in step.passes]
        return 0 if any(each.nodes and not each.depth for each in passes) else sum(each.new for each in passes)

    @property
    def acceptance_length(self) -> float:
        """Mean acceptance length: output tokens per target pass, with end tokens, so that `ar` has 1."""
        return (self.tokens + self.ends) / self.passes if self.passes else 1.0

    @property
    def later_speed(self) -> float:
        """Output tokens per second after the first pass of each text; 0 if no text needed another one."""
        steps = [step for step in self.steps if step.passes]
        tokens = sum(len(step.tokens) - step.passes[0].accepted - 1 for step in steps if len(step.passes) > 1)
        seconds = sum(step.seconds - step.first_seconds for step in steps if len(step.passes) > 1)
        return tokens / seconds if seconds else 0.0


def rows(table: Sequence[TableLine], curve: CostCurve | None = None) -> list[Row]:
    """Compute the figures of every line, under the names that all benchmarks share.

    Speed-ups are relative to the `baseline`, if there is one: ``speedup`` in output tokens per
    second (SSBD v2, Tables 2 and 3), ``pass_speedup`` in tokens per target pass.

    Args:
        curve: cost curve measured in the same run, for ``limit_distance``.
    """
    records: dict[str, list[Record]] = {}
    for line in table:
        language = line.contender.language
        records.setdefault(language, []).extend(line.records)
    shortest = {language: tails(of_all) for language, of_all in records.items()} if curve is not None else {}
    found = []
    for line in table:
        language = line.contender.language
        row = _row(line, baseline(line, table))
        if curve is not None:
            least = distance(line.records, curve, shortest[language])
            row["limit_distance"] = None if least is None else round(least, 3)
        found.append(row)
    return found


def baseline(line: TableLine, table: Sequence[TableLine]) -> TableLine | None:
    """Return the ``ar`` line of the same language that is run as the line is, or else the first one."""

    def run(of: TableLine) -> tuple[object, ...]:
        return of.contender.threads, of.contender.batch

    found = [
        each for each in table if (each.contender.method, each.contender.language) == ("ar", line.contender.language)
    ]
    return next((each for each in found if run(each) == run(line)), next(iter(found), None))


def _row(line: TableLine, baseline: TableLine | None) -> Row:
    steps = line.steps
    drafted, accepted = sum(step.drafted for step in steps), sum(step.accepted for step in steps)
    kept = accepted - sum(step.end_drafted for step in steps)
    updates = sum(step.decoded for step in steps)
    row: Row = {
        "method": line.contender.method,
        "options": line.contender.settings,
        "display": line.contender.shows,
        "threads": line.contender.threads,
        "batch": line.contender.batch,
        "small_model": Path(line.contender.small).name or None,
        "target_language": line.contender.language,
        "segments": len(line.records),
        "updates": updates,
        "output_tokens": line.tokens,
        "target_passes": line.passes,
        "positions": line.positions or None,
        "second_passes": sum(step.second for step in steps) or None,
        "draft_passes": sum(step.draft_passes for step in steps) or None,
        **_shares(line),
        "mean_acceptance_length": round(line.acceptance_length, 3),
        "draft_acceptance": _ratio(accepted, drafted) if drafted else None,
        "output_acceptance": _ratio(kept, line.tokens) if drafted else None,
        "ne_output": _erasure(line.records, 0),
        "ne_display": _erasure(line.records, 1),
        "tokens_per_second": _ratio(line.tokens, line.seconds, 1),
        "model_share": _ratio(sum(step.model_seconds for step in steps), line.seconds),
        "cpu_seconds": round(line.cpu_seconds, 2) or None,
        "cpu_ms": round(1e3 * line.cpu_seconds / (updates or 1), 2) or None,
        "cpu_speedup": None,
        "speedup": None,
        "pass_speedup": None,
        "limit_distance": None,
        "failures": sum(len(record.failures) for record in line.records),
        "bleu": None,
        "chrf": None,
    }
    if baseline is not None:
        row.update(_speedups(line, baseline))
    return row


def _shares(line: TableLine) -> Row:
    """Return BiLD's shares (Table 4): how often the large model is asked, and rolls back, per token of the output.

    Only for methods with a small model.  End tokens count as tokens of the output.
    """
    steps = line.steps
    if not any(step.draft_passes for step in steps):
        return {}
    cut = sum(each.accepted < each.depth for step in steps for each in step.passes)
    tokens = line.tokens + line.ends
    return {"fallback_share": _ratio(line.passes, tokens), "rollback_share": _ratio(cut, tokens)}


def _speedups(line: TableLine, baseline: TableLine) -> Row:
    cpu, speedup = baseline.cpu_seconds, _ratio(line.tokens * baseline.seconds, baseline.tokens * line.seconds, 3)
    flops = _ratio(line.positions, baseline.positions, 3) or None
    same = [mine.translation == theirs.translation for mine, theirs in zip(line.records, baseline.records, strict=True)]
    return {
        "cpu_speedup": _ratio(cpu, line.cpu_seconds, 3) if cpu else None,
        "speedup": speedup,
        "relative_flops": flops,
        "flops_by_speed": _ratio(flops, speedup, 3) if flops and speedup else None,
        "pass_speedup": round(line.acceptance_length / baseline.acceptance_length, 3),
        "same_as_ar": sum(same),
    }


def _erasure(records: Sequence[Record], which: int) -> float:
    """Return normalized erasure of the output (``which`` = 0) or of the display (1), pooled over segments."""
    erased = sum(step.erased[which] for record in records for step in record.steps)
    final = sum(record.steps[-1].length[which] for record in records)
    return round(erased / final, 4) if final else 0.0


def _ratio(above: float, below: float, digits: int = 4) -> float | None:
    return round(above / below, digits) if below else None


def percentile_ms(seconds: Sequence[float], share: float) -> float | None:
    """Return a percentile (``share`` in percent) in milliseconds, interpolated; None if there are no values."""
    return round(1e3 * float(np.percentile(seconds, share)), 3) if seconds else None
