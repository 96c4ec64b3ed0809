"""The report on a folder of runs: a Markdown file with all tables, and the plots beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from redraft.errors import InputError
from redraft_bench.bench.plots import plot_of
from redraft_bench.bench.read import ENDING, Result, read_results
from redraft_bench.eval.columns import cell, column, filled
from redraft_bench.eval.table import legend, markdown_table
from redraft_bench.pages.checks import below
from redraft_bench.pages.page import title

NAME = "report.md"
INTRODUCTION = "Methods take turns within a run, so speed-ups are ratios within one run.\n"


def write(folder: Path) -> Path:
    """Write the report on all ``.rows.jsonl`` files of a folder into that folder.

    Returns:
        Path of the report.

    Raises:
        InputError: the folder has none of these files, or one cannot be read.
    """
    results = read_results(folder)
    if not results:
        raise InputError(f"{folder} contains no results: benchmarks write them to files that end in {ENDING}")
    parts = [f"# Redraft bench: {folder.resolve().name}\n", INTRODUCTION]
    for _, bench in groupby(results, key=lambda each: each.bench):
        found = list(bench)
        parts.append(f"## {title(found[0])}\n")
        for result in found:
            parts += _part(result, folder)
    parts.append(legend({field for result in results for field in filled(result.rows)}))
    path = folder / NAME
    path.write_text("\n".join(parts), encoding="utf-8", newline="\n")
    return path


def _part(result: Result, folder: Path) -> Iterator[str]:
    """Yield heading, table and signatures of a result, and its pictures, which are written to files."""
    fields = filled(result.rows)
    columns = [column(field, result.rows) for field in fields]
    rows = [[cell(row, field, each.form) for field, each in zip(fields, columns, strict=True)] for row in result.rows]
    yield f"### {result.name}\n"
    yield markdown_table([each.heading for each in columns], rows)
    yield below(result.signatures)
    if plot := plot_of(result):
        stem = "-".join(filter(None, (result.bench, result.data, result.language, result.other_model, plot.name)))
        file = re.sub(r"[^0-9A-Za-z.-]+", "-", stem) + ".svg"
        (folder / file).write_text(plot.draw(result, stem) + "\n", encoding="utf-8", newline="\n")
        yield f"![{plot.name}]({file})\n\n*{plot.about}*\n"
