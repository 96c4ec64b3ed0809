"""The report on a folder of runs: one self-contained HTML page with tables and plots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from redraft.errors import InputError
from redraft.signature import with_processor
from redraft_bench.bench.plots.chart import INK
from redraft_bench.bench.plots.kinds import draw, plots_of
from redraft_bench.bench.read import ENDING, Result, read_results
from redraft_bench.bench.tables import TABLES
from redraft_bench.eval.columns import COLUMNS, Column, cell, column, filled
from redraft_bench.viz.page import render

NAME = "report.html"
#: Descriptions of the load tests (`redraft_bench.loadtest`).
LIVE = {
    "capacity": "How many live talks a server carries.",
    "load": "Many live talks at once against a server.",
}


@dataclass(frozen=True, slots=True)
class _Figure:
    about: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class _Part:
    """A result prepared for the page."""

    heading: str
    columns: Sequence[Column]
    cells: Sequence[Sequence[str]]
    signatures: Sequence[str]
    figures: Sequence[_Figure]


@dataclass(frozen=True, slots=True)
class _Section:
    """The results of one benchmark."""

    anchor: str
    heading: str
    parts: Sequence[_Part]


def write(folder: Path) -> Path:
    """Write the report on all ``.rows.jsonl`` files of a folder into that folder.

    Returns:
        Path of the page.

    Raises:
        InputError: the folder has none of these files, or one cannot be read.
    """
    results = read_results(folder)
    if not results:
        raise InputError(f"{folder} contains no results: benchmarks write them to files that end in {ENDING}")
    path = folder / NAME
    path.write_text(page(results, folder.resolve().name), encoding="utf-8", newline="\n")
    return path


def page(results: Sequence[Result], name: str) -> str:
    """Return the page for some results, in order; results of a benchmark must be adjacent."""
    sections = [
        _section(list(group), number)
        for number, (_, group) in enumerate(groupby(results, key=lambda each: each.bench), 1)
    ]
    used = {field for result in results for field in filled(result.rows)}
    return render(
        "report.html",
        title=f"Redraft bench: {name}",
        summary=f"{len(results)} {'table' if len(results) == 1 else 'tables'}. The line under each says what was "
        "measured on what. Methods take turns within a run, so speed-ups are ratios within one run.",
        legend=[each for field, each in COLUMNS.items() if field in used],
        sections=sections,
    )


def heading(result: Result) -> str:
    """Return the heading of a result's table, with the paper's table it reproduces."""
    return TABLES[result.bench].summary if result.bench in TABLES else LIVE.get(result.bench, result.bench)


def _section(results: Sequence[Result], number: int) -> _Section:
    # T(n) depends on the model, not on the language.
    models = [result.facts.get("model") for result in results]
    parts = [
        _part(result, f"f{number}-{place}", with_cost=models.index(models[place]) == place)
        for place, result in enumerate(results)
    ]
    return _Section(f"bench-{number}", heading(results[0]), parts)


def _part(result: Result, name: str, with_cost: bool) -> _Part:
    fields = filled(result.rows)
    columns = [column(field, result.rows) for field in fields]
    plots = [plot for plot in plots_of(result) if with_cost or plot.name != "cost"]
    return _Part(
        result.name,
        columns,
        [[cell(row, field, each.form) for field, each in zip(fields, columns, strict=True)] for row in result.rows],
        [with_processor(each) for each in result.signatures],
        [_Figure(plot.about, _inline(draw(plot, [result], f"{name}-{plot.name}"))) for plot in plots],
    )


def _inline(svg: str) -> Markup:
    """Embed an SVG document in the page: full width, in the page's text colour."""
    svg = re.sub(r'(?:width|height)="[\d.]+pt" ?', "", svg, count=2)
    return Markup(svg.replace(INK, "currentColor"))
