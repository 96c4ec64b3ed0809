"""The report on a folder of runs: a Markdown file with all tables, as on the pages, and the plots beside it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from redraft.errors import InputError
from redraft_bench.bench.read import ENDING, read_results
from redraft_bench.pages.page import glossary, picture, section, title

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
        for each in found:
            parts += section([each], 3, whole=True)
            if shown := picture([each], every=True):
                name, plot, result = shown
                (folder / name).write_text(plot.draw(result, name) + "\n", encoding="utf-8", newline="\n")
    path = folder / NAME
    path.write_text("\n".join([*parts, glossary(results)]), encoding="utf-8", newline="\n")
    return path
