"""The table at the end of the demo: what each method took."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redraft.cli.demo.player import Player

#: Field -> heading and number format.
COLUMNS = {
    "target_language": ("to", ""),
    "method": ("method", ""),
    "updates": ("updates", ",.0f"),
    "output_tokens": ("tokens", ",.0f"),
    "target_passes": ("passes", ",.0f"),
    "draft_passes": ("small model's passes", ",.0f"),
    "draft_acceptance": ("A/D", ".1%"),
    "output_acceptance": ("A/O", ".1%"),
    "ne_output": ("NE", ".2f"),
    "ne_display": ("NE shown", ".2f"),
    "tokens_per_second": ("tokens/s", ",.0f"),
    "speedup": ("speed-up", ".2f"),
}
#: Minimum width where there is no terminal, and width of a line in a heading, in characters.
LEAST_WIDTH, HEADING_WIDTH = 160, 9


def rows(players: Sequence[Player]) -> list[dict[str, Any]]:
    """Return the figures of each player; speed-ups are relative to ``ar`` into the same language."""
    baselines = {each.contender.language: each for each in players if each.contender.method == "ar"}
    return [_row(player, baselines.get(player.contender.language)) for player in players]


def _row(player: Player, baseline: Player | None) -> dict[str, Any]:
    found, drafts = player.total, player.total.drafted > 0
    row = {
        "method": player.contender.method,
        "options": player.contender.settings,
        "target_language": player.contender.language,
        "segments": len(player.finished),
        "updates": found.updates,
        "output_tokens": found.tokens,
        "target_passes": found.passes,
        "draft_passes": found.draft_passes or None,
        "draft_acceptance": _ratio(found.accepted, found.drafted),
        "output_acceptance": _ratio(found.accepted, found.tokens) if drafts else None,
        "ne_output": _ratio(found.erased, found.length),
        "ne_display": _ratio(found.erased_shown, found.length_shown),
        "tokens_per_second": _ratio(found.tokens, found.seconds, 1),
        "speedup": None,
    }
    if baseline is not None:
        theirs = baseline.total
        row["speedup"] = _ratio(found.tokens * theirs.seconds, theirs.tokens * found.seconds, 3)
        pairs = zip(player.finished, baseline.finished, strict=True)
        row["same_as_ar"] = sum(mine.text == other.text for mine, other in pairs)
    return row


def _ratio(above: float, below: float, digits: int = 4) -> float | None:
    return round(above / below, digits) if below else None


def print_table(rows: Sequence[dict[str, Any]], signature: str, console: Console) -> None:
    """Print a table, without the columns that are empty, and the signature below it."""
    names = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
    if len({row["target_language"] for row in rows}) == 1:
        names.remove("target_language")
    table = Table(header_style="bold", pad_edge=False, box=None, padding=(0, 1, 0, 0))
    for name in names:
        heading, form = COLUMNS[name]
        lines = textwrap.wrap(heading, HEADING_WIDTH, break_long_words=False)
        table.add_column("\n".join(lines), justify="right" if form else "left", no_wrap=True)
    last = None
    for row in rows:
        if last is not None and row["target_language"] != last:
            table.add_row()
        last = row["target_language"]
        table.add_row(*(_cell(row, name) for name in names))
    if not console.is_terminal:  # only a terminal has a width that lines must not exceed
        console.width = max(console.width, LEAST_WIDTH)
    console.print(table)
    console.print(Text(signature, style="dim"), soft_wrap=True)


def _cell(row: dict[str, Any], name: str) -> str:
    if name == "method":
        return f"{row['method']} {row['options']}".strip()
    value = row[name]
    return "–" if value is None else format(value, COLUMNS[name][1])


def same_finals(rows: Sequence[dict[str, Any]]) -> str:
    """Return how many final captions of each other method are those of re-translation; empty without that."""
    found = [
        f"{row['method']} {row['target_language']} {row['same_as_ar']} of {row['segments']}"
        for row in rows
        if row["method"] != "ar" and "same_as_ar" in row
    ]
    return f"final captions as with ar: {', '.join(found)}; the others may be better or worse." if found else ""
