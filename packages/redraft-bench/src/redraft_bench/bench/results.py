"""Turn the records of a run into rows: figures, quality, lag, and data for the report."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from redraft.captions.languages import parse_language
from redraft_bench.bench.run import Bench
from redraft_bench.eval.bootstrap import difference, interval, ratio, speedup
from redraft_bench.eval.caption_lag import caption_lag_figures
from redraft_bench.eval.erasure import erasure_of_texts, flores_tokenizer
from redraft_bench.eval.figures import Row, TableLine, baseline, rows
from redraft_bench.eval.latency import latency_figures
from redraft_bench.eval.long_yaal import LongYaal, long_yaal
from redraft_bench.eval.losses import losses
from redraft_bench.eval.quality import quality, statistics
from redraft_bench.eval.record import Record
from redraft_bench.eval.spoken import SPOKEN
from redraft_bench.eval.tasks import efficiency
from redraft_bench.eval.tasks import scores as scores_of_tasks

#: The method with whose quality others are compared.
PEER = "local-agreement"


def finish(bench: Bench, lines: Sequence[TableLine], seed: int = 0) -> tuple[list[Row], str]:
    """Compute the rows of a run and their signature, and write both to its ``.rows.jsonl``."""
    curve = bench.curve()
    found = rows(lines, curve)
    scored = _references(bench)
    line = bench.signature
    _score_tasks(bench, lines, found)
    if scored and not bench.tasks:
        scores = [_quality(each, scored, bench.language, seed) for each in lines]
        for row, (figures, _metrics) in zip(found, scores, strict=True):
            row.update(figures)
        if bench.stream.name == SPOKEN:
            for row, each in zip(found, lines, strict=True):
                row.update(_losses(each, scored, bench))
        line += f"|metrics:{scores[0][1]}|bootstrap:1000,95%,seed {seed}"
    for row, each in zip(found, lines, strict=True):
        row.update(_intervals(each, baseline(each, lines) or lines[0], seed))
        of_dal = seed if "dal" in bench.table.columns else None
        row.update(latency_figures(each.records, bench.stream, bench.language, of_dal))
        row.update(caption_lag_figures(each.records, bench.stream, bench.language, seed))
        row.update(bench=bench.table.name, data=bench.stream.name)
    for row, each in zip(found, lines, strict=True):
        row.update(_in_flores_tokens(bench, each))
    write_texts(bench, lines, scored)
    if bench.table.recognised:
        for row, more_figures in zip(found, _resegmented(lines, bench, seed), strict=True):
            row.update(more_figures)
    more: dict[str, Any] = {
        "bench": bench.table.name,
        "data": bench.stream.name,
        "target_language": bench.language,
        "curve": asdict(curve),
    }
    with bench.file(".rows.jsonl").open("w", encoding="utf-8") as file:
        for written in (*found, more):
            file.write(json.dumps({**written, "signature": line}, ensure_ascii=False) + "\n")
    return found, line


def _in_flores_tokens(bench: Bench, line: TableLine) -> Row:
    """Return NE in tokens of Flores-101, if the table has it and the tokenizer is there."""
    tokenize = flores_tokenizer() if "ne_flores" in bench.table.columns else None
    return {} if tokenize is None else {"ne_flores": erasure_of_texts(line.records, tokenize)}


def _score_tasks(bench: Bench, lines: Sequence[TableLine], found: Sequence[Row]) -> None:
    """Add the scores of tasks to the rows."""
    if not bench.tasks:
        return
    tasks = [bench.tasks[segment.utterance] for segment in bench.stream.segments]
    for row, each, by_kind in zip(found, lines, efficiency(lines, tasks), strict=True):
        row.update(scores_of_tasks([record.translation for record in each.records], tasks))
        row.update(by_kind)


def write_texts(bench: Bench, lines: Sequence[TableLine], references: Mapping[int, str]) -> None:
    """Write sources, references and the translations of each line, a segment a line, for metrics such as COMET.

    Only segments with references, or all if there are none.
    """
    numbers = [*references] or range(len(bench.stream.segments))
    sources = [bench.stream.segments[number].source for number in numbers]
    texts = {"source": sources, "reference": [*references.values()]}
    for line in lines:
        name = re.sub(r"[^\w.=-]+", "-", line.contender.name)
        texts[f"hypothesis.{name}"] = [line.records[number].translation for number in numbers]
    folder = bench.file(".texts")
    folder.mkdir(exist_ok=True)
    for name, found in texts.items():
        if found:
            text = "".join(" ".join(each.split()) + "\n" for each in found)
            (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")


def _resegmented(lines: Sequence[TableLine], bench: Bench, seed: int) -> list[Row]:
    """Return OmniSTEval's scores of all lines, if it is installed and the recording has references.

    The chrF of each line is also compared with that of LocalAgreement, if the table has it, caption by caption.
    """
    if find_spec("omnisteval") is None or not _references(bench):
        return [{} for _ in lines]
    found = [long_yaal(line.records, bench.stream, bench.language) for line in lines]
    peer = next((scores for each, scores in zip(lines, found, strict=True) if each.contender.method == PEER), None)
    rows_: list[Row] = []
    for scores in found:
        named = {"resegmented_bleu": scores.bleu, "resegmented_chrf": scores.chrf, "long_yaal": scores.lag}
        row: Row = {name: round(score, 4) for name, score in named.items()}
        rows_.append(row if peer in (None, scores) else row | chrf_change(scores, peer, bench.language, seed))
    return rows_


def chrf_change(scores: LongYaal, other: LongYaal, language: str, seed: int = 0) -> Row:
    """Return by how much chrF is more than in another line, with its 95% interval by paired bootstrap over captions."""
    code = parse_language(language).code
    (mine, statistic), (theirs, _) = (
        statistics(each.captions, each.references, code)["chrf"] for each in (scores, other)
    )
    low, high = difference(mine, theirs, statistic, seed=seed)
    change = statistic(mine.sum(0)) - statistic(theirs.sum(0))
    return {"chrf_change": round(change, 2), "chrf_change_low": round(low, 2), "chrf_change_high": round(high, 2)}


def _intervals(line: TableLine, baseline: TableLine, seed: int) -> Row:
    """Return 95% intervals of NE of the display and of the speed-up over ``baseline``."""
    erased = [[sum(step.erased[1] for step in each.steps), each.steps[-1].length[1]] for each in line.records]
    times = [
        [_tokens(mine), mine.seconds, _tokens(theirs), theirs.seconds]
        for mine, theirs in zip(line.records, baseline.records, strict=True)
    ]
    row: Row = {}
    for name, per_segment, statistic in (("ne_display", erased, ratio), ("speedup", times, speedup)):
        low, high = interval(per_segment, statistic, seed=seed)
        row.update({f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)})
    return row


def _tokens(record: Record) -> int:
    return sum(len(step.tokens) for step in record.steps if step.decoded)


def _quality(line: TableLine, references: dict[int, str], language: str, seed: int) -> tuple[Row, str]:
    """Return BLEU and chrF with 95% intervals, and the metrics' signature."""
    hypotheses = [line.records[number].translation for number in references]
    language = parse_language(language).code
    scores = quality(hypotheses, list(references.values()), language)
    row: Row = {"bleu": round(scores.bleu, 2), "chrf": round(scores.chrf, 2)}
    for name, (per_segment, statistic) in statistics(hypotheses, list(references.values()), language).items():
        low, high = interval(per_segment, statistic, seed=seed)
        row.update({f"{name}_low": round(low, 2), f"{name}_high": round(high, 2)})
    return row, scores.signature


def _losses(line: TableLine, references: dict[int, str], bench: Bench) -> Row:
    """Return what translations of utterances have lost."""
    sources = [bench.stream.segments[number].source for number in references]
    translations = [line.records[number].translation for number in references]
    return {**losses(sources, translations, list(references.values()), parse_language(bench.language).code)}


def _references(bench: Bench) -> dict[int, str]:
    """Return segment number -> reference, for segments that have one."""
    code, segments = parse_language(bench.language).code, enumerate(bench.stream.segments)
    return {n: each.references[code] for n, each in segments if code in each.references}
