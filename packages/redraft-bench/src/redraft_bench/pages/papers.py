"""The page with the papers' tables as they came out here, from the rows in benchmarks/papers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from redraft_bench.bench.read import Result, read_results
from redraft_bench.pages.checks import BACK
from redraft_bench.pages.page import groups, section, title

FOLDER = Path("benchmarks") / "papers"
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
