"""Finds rows of a table by their method and its options."""

from __future__ import annotations

from collections.abc import Iterable

from redraft.measure.eval.figures import Row


def options(row: Row) -> dict[str, str]:
    """The options of a row by name."""
    return {name: value for name, _, value in (each.partition("=") for each in str(row.get("options") or "").split())}


def number(row: Row, name: str) -> float:
    """A numeric option of a row; NaN where it was not set."""
    return float(options(row).get(name, "nan"))


def pick(rows: Iterable[Row], *methods: str, **wanted: str) -> list[Row]:
    """The rows of some methods with these among their options, those that hide something left out."""
    return [
        row
        for row in rows
        if row["method"] in methods and not row.get("mask") and wanted.items() <= options(row).items()
    ]
