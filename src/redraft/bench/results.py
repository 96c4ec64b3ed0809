"""From the lines of a run to its rows: figures, quality, lag, and what the report draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from redraft.bench.run import Bench
from redraft.eval.bootstrap import interval
from redraft.eval.contender import Contender
from redraft.eval.figures import Line, Row, rows
from redraft.eval.quality import quality, statistics
from redraft.eval.timing import latency_figures

#: Positions of a draft beyond this are counted together with it.
LAST_POSITION = 40


def finish(bench: Bench, lines: Sequence[Line], seed: int = 0) -> tuple[list[Row], str]:
    """The rows of a run and their signature; both are written to the run's ``.rows.jsonl``.

    Args:
        seed: of the confidence intervals.
    """
    curve = bench.curve()
    found = rows(lines, curve)
    scored = _references(bench)
    line = bench.signature
    if scored:
        scores = [_quality(each, scored, bench.language, seed) for each in lines]
        for row, (figures, _metrics) in zip(found, scores, strict=True):
            row.update(figures)
        line += f"|metrics:{scores[0][1]}|bootstrap:1000,95%,seed {seed}"
    for row, each in zip(found, lines, strict=True):
        row.update(latency_figures(each.records, bench.stream, bench.language))
        row.update(bench=bench.table.name, data=bench.stream.name)
    more: dict[str, Any] = {
        "bench": bench.table.name,
        "data": bench.stream.name,
        "target_language": bench.language,
        "curve": asdict(curve),
        "acceptance_by_position": {_shown(each.contender): acceptance(each) for each in lines},
    }
    with bench.file(".rows.jsonl").open("w", encoding="utf-8") as file:
        for written in (*found, more):
            file.write(json.dumps({**written, "signature": line}, ensure_ascii=False) + "\n")
    return found, line


def _quality(line: Line, references: dict[int, str], language: str, seed: int) -> tuple[Row, str]:
    """BLEU and chrF with their 95% intervals, and the metrics' signature."""
    hypotheses = [line.records[number].translation for number in references]
    scores = quality(hypotheses, list(references.values()), language)
    row: Row = {"bleu": round(scores.bleu, 2), "chrf": round(scores.chrf, 2)}
    for name, (per_segment, statistic) in statistics(hypotheses, list(references.values()), language).items():
        low, high = interval(per_segment, statistic, seed=seed)
        row.update({f"{name}_low": round(low, 2), f"{name}_high": round(high, 2)})
    return row, scores.signature


def _references(bench: Bench) -> dict[int, str]:
    """The references of the segments that have one, by number."""
    segments = enumerate(bench.stream.segments)
    return {n: each.references[bench.language] for n, each in segments if bench.language in each.references}


def _shown(contender: Contender) -> str:
    return f"{contender.title} {contender.masking}".strip()


def acceptance(line: Line) -> list[list[int]]:
    """For every position of an update's first draft: how many tokens stood there and were kept, and how many stood."""
    counts = [[0, 0] for _ in range(LAST_POSITION)]
    for step in line.steps:
        if step.passes:
            first = step.passes[0]
            for position in range(first.depth):
                count = counts[min(position, LAST_POSITION - 1)]
                count[0] += position < first.accepted
                count[1] += 1
    while counts and counts[-1][1] == 0:
        counts.pop()
    return counts
