"""Add COMET to the rows of finished runs, in an environment that has its library."""

from __future__ import annotations

import json
from pathlib import Path

from redraft.captions.languages import parse_language
from redraft.errors import InputError
from redraft_bench.eval.comet import comet
from redraft_bench.eval.record import Record, read_records
from redraft_bench.eval.stream import Stream

RECORDS = ".records.jsonl"


def add_comet(folder: Path, model: str) -> list[Path]:
    """Score the final translations of every run in a folder; return the row files that now have ``comet``.

    Args:
        folder: the folder with the runs.
        model: name or path; see `redraft_bench.eval.comet.comet`.

    Raises:
        InputError: the folder has no finished run with references.
        MissingExtra: unbabel-comet is not installed.
        ModelError: the COMET model cannot be loaded.
    """
    done = [path for records in sorted(folder.glob(f"*{RECORDS}")) for path in _score(records, model)]
    if not done:
        raise InputError(
            f"{folder} contains no finished run with references: there must be *{RECORDS} and *.rows.jsonl"
        )
    return done


def _score(records: Path, model: str) -> list[Path]:
    stem = records.name.removesuffix(RECORDS)
    path, stream_file = (records.with_name(stem + ending) for ending in (".rows.jsonl", ".stream.jsonl"))
    if not (path.exists() and stream_file.exists()):
        return []
    segments = Stream.load(stream_file).segments
    by_line: dict[str, list[Record]] = {}
    for record in read_records(records):
        by_line.setdefault(record.contender, []).append(record)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    code = parse_language(str(rows[0]["target_language"])).code
    scored = [number for number, each in enumerate(segments) if code in each.references]
    if not scored:
        return []
    # Contenders and rows were written in the same order.
    for row, found in zip(rows, by_line.values(), strict=False):
        score = comet(
            [segments[number].source for number in scored],
            [found[number].translation for number in scored],
            [segments[number].references[code] for number in scored],
            model=model,
        )
        row["comet"] = round(score.score, 4)
        row["signature"] = f"{row['signature'].partition('|comet:')[0]}|comet:{model}"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return [path]
