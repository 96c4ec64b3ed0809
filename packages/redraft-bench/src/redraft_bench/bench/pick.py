"""Find rows of a table by method and options."""

from __future__ import annotations

from collections.abc import Iterable

from redraft_bench.eval.figures import Row


def options(row: Row) -> dict[str, str]:
    """Return the options of a row by name."""
    return {name: value for name, _, value in (each.partition("=") for each in str(row.get("options") or "").split())}


def number(row: Row, name: str) -> float:
    """Return a numeric option of a row; NaN if it is not set."""
    return float(options(row).get(name, "nan"))


def pick(rows: Iterable[Row], *methods: str, **wanted: str) -> list[Row]:
    """Return the rows of these methods with these options, without rows that mask output."""
    return [
        row
        for row in rows
        if row["method"] in methods and not row.get("mask") and wanted.items() <= options(row).items()
    ]
