"""Rows of figures as a table, in the terminal and as Markdown, and in sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redraft_bench.eval.columns import COLUMNS, cell, column, filled
from redraft_bench.eval.figures import Row

#: Maximum width of a table written to a file, and of a line in a heading, in characters.
LEAST_WIDTH, HEADING_WIDTH = 160, 9


def print_table(rows: Sequence[Row], signature: str, console: Console, columns: Sequence[str]) -> None:
    """Print a table of those ``columns`` that `filled` selects, with the signature below it."""
    names = filled(rows, columns)
    shown = [column(name, rows) for name in names]
    table = Table(header_style="bold", pad_edge=False, box=None, padding=(0, 1, 0, 0))
    for each in shown:
        heading = "\n".join(textwrap.wrap(each.heading, HEADING_WIDTH, break_long_words=False))
        table.add_column(heading, justify="right" if each.form else "left", no_wrap=True)
    last = None
    for row in rows:
        if last is not None and row["target_language"] != last:
            table.add_row()
        last = row["target_language"]
        table.add_row(*(cell(row, name, each.form, bounds=False) for name, each in zip(names, shown, strict=True)))
    if not console.is_terminal:  # only a terminal has a width that lines must not exceed
        console.width = max(console.width, LEAST_WIDTH)
    console.print(table)
    console.print(Text(signature, style="dim"), soft_wrap=True)


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    escaped = ([text.replace("|", "\\|") for text in line] for line in lines)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in escaped)


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def span(values: Sequence[float], form: str) -> str:
    """Return minimum and maximum of some figures, or the single value."""
    return "–".join(dict.fromkeys(format(value, form) for value in (min(values), max(values))))


def legend(names: Container[str]) -> str:
    """Return a Markdown section on what the columns of some fields mean."""
    lines = [f"- **{each.heading}**: {each.about}\n" for name, each in COLUMNS.items() if name in names and each.about]
    return f"## Columns\n\n{''.join(dict.fromkeys(lines))}"
