"""The papers' tables as they came out here: their page, and the trends in docs/papers.md, from benchmarks/papers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

from redraft.decoding.methods.ssbd import KEEPS_ALL
from redraft_bench.bench.read import Result, options, read_results
from redraft_bench.eval.columns import COLUMNS, cell
from redraft_bench.eval.figures import Row
from redraft_bench.eval.table import markdown_table
from redraft_bench.pages.checks import BACK
from redraft_bench.pages.page import groups, section, title

FOLDER = Path("benchmarks") / "papers"
#: The table with the bias and mask-k of SSBD, and the bias with which it masks.
SSBD, MASKED = "ssbd-table-3", 0.2
#: Heading of a display -> its label in the rows.
MASKS = {
    f"mask {k} in the {where}": f"mask {k}{plain}"
    for where, plain in (("draft", ", plain"), ("display", ""))
    for k in (3, 5)
}
#: Figures of the trends -> the direction in which a larger bias moves them in the paper.
TRENDS = {
    "draft_acceptance": 1,
    "output_acceptance": 1,
    "ne_output": -1,
    "ne_display": -1,
    "pass_speedup": 1,
    "speedup": 1,
}
NAME = "papers.md"
INTRODUCTION = """# Tables and figures of the papers

{back} · [What the columns mean](../metrics.md) · [All items of the papers](../papers.md)

These runs are small: they show that each command runs and which way its figures go, on the model and machine that the
signature names. Run the same commands on your own model and data for figures that mean something.
"""


def results(root: Path) -> list[Result]:
    """Return the results of the papers' tables."""
    return read_results(root / FOLDER)


def page(found: Sequence[Result]) -> str:
    """Return the page, with a section for each table."""
    parts = [INTRODUCTION.format(back=BACK.rstrip())]
    for _, bench in groupby(found, key=lambda each: each.bench):
        of_bench = list(bench)
        parts.append(f"## {title(of_bench[0])}\n")
        for group in groups(of_bench):
            parts += section(group, 3, code="text")
    return "\n".join(parts)


def trends(found: Sequence[Result]) -> str:
    """Return what the bias and mask-k of SSBD do with each model: a table, and how steadily the figures move."""
    parts = []
    for each in (each for each in found if each.bench == SSBD):
        biased = {
            float(options(row)["beta"]): row for row in each.rows if row["method"] == "ssbd" and not row["display"]
        }
        over = {beta: biased[beta] for beta in sorted(biased) if beta <= KEEPS_ALL}
        masked = {str(row["display"]): row for row in each.rows if options(row).get("beta") == f"{MASKED:g}"}
        columns = {f"beta {beta:g}": row for beta, row in over.items()}
        columns |= {heading: masked[label] for heading, label in MASKS.items() if label in masked}
        cells = [
            [COLUMNS[name].heading, *(cell(row, name, COLUMNS[name].form, bounds=False) for row in columns.values())]
            for name in TRENDS
        ]
        words = [f"{COLUMNS[name].heading} {_steps([*over.values()], name, TRENDS[name])}" for name in TRENDS]
        plural = "s" * (each.facts["segments"] != "1")
        parts.append(
            f"**{each.name}, {each.facts['segments']} sentence{plural}**, masks with a beta of {MASKED:g}:\n\n"
            f"{markdown_table(['', *columns], cells)}\n"
            f"Steps of beta in which a figure moves as in the paper, or not at all: {', '.join(words)}.\n"
        )
    return "\n" + "\n".join(parts) + "\n"


def _steps(rows: Sequence[Row], name: str, direction: int) -> str:
    """Return in how many steps from row to row a figure does not move against a direction."""
    values = [direction * float(str(row[name])) for row in rows]
    steady = sum(before <= after for before, after in pairwise(values))
    return f"{steady} of {len(values) - 1}"
