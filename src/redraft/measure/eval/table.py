"""Prints rows of figures: a table for people, JSON Lines for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redraft.measure.eval.figures import Figure, Row

#: Field -> heading and number format.
COLUMNS = {
    "target_language": ("to", ""),
    "method": ("method", ""),
    "options": ("options", ""),
    "small_model": ("small model", ""),
    "mask": ("hidden", ""),
    "segments": ("segments", "d"),
    "updates": ("updates", "d"),
    "output_tokens": ("tokens", "d"),
    "target_passes": ("passes", "d"),
    "passes_verify": ("verify", ".2f"),
    "passes_new": ("new", ".2f"),
    "passes_changed": ("changed", ".2f"),
    "passes_again": ("again", ".2f"),
    "draft_passes": ("small", "d"),
    "mean_acceptance_length": ("MAL", ".2f"),
    "draft_acceptance": ("A/D", ".0%"),
    "output_acceptance": ("A/O", ".0%"),
    "ne_output": ("NE", ".2f"),
    "ne_display": ("shown", ".2f"),
    "tokens_per_second": ("tok/s", ".0f"),
    "speedup": ("speed-up", ".2f"),
    "pass_speedup": ("by passes", ".2f"),
    "limit_distance": ("× limit", ".2f"),
    "same_as_ar": ("as ar", "d"),
    "bleu": ("BLEU", ".1f"),
    "chrf": ("chrF", ".1f"),
    "admission": ("admits", ""),
    "talks": ("talks", "d"),
    "refused": ("refused", "d"),
    "broken": ("broken", "d"),
    "passed_over": ("passed", "d"),
    "caption_lag_p50_ms": ("lag p50", ".0f"),
    "caption_lag_p95_ms": ("p95", ".0f"),
    "caption_lag_max_ms": ("max (ms)", ".0f"),
    "ne_units": ("NE", ".2f"),
    "server_cpu": ("CPU", ".2f"),
    "client_cpu": ("client's", ".2f"),
    "server_mb": ("MB", ".0f"),
    "server_mb_slope": ("MB/min", ".2f"),
    "left_over": ("left", "d"),
}


#: Columns of characters that a table may take in a file.
LEAST_WIDTH = 160
#: What most tables show.
USUAL = (
    *("target_language", "method", "options", "mask", "updates", "output_tokens", "target_passes", "draft_passes"),
    *("draft_acceptance", "output_acceptance", "ne_output", "ne_display", "tokens_per_second", "speedup"),
    *("bleu", "chrf"),
)


def print_table(rows: Sequence[Row], signature: str, console: Console, columns: Sequence[str] = USUAL) -> None:
    """A table of those ``columns`` that at least one row fills, with the signature below it."""
    filled = [name for name in columns if any(row.get(name) not in (None, "") for row in rows)]
    if len({row.get("mask") for row in rows}) == 1:
        filled = [name for name in filled if name != "mask"]
    table = Table(header_style="bold", pad_edge=False, box=None, padding=(0, 1, 0, 0))
    for name in filled:
        heading, form = COLUMNS[name]
        table.add_column(heading, justify="right" if form else "left", no_wrap=True)
    last = None
    for row in rows:
        if last is not None and row["target_language"] != last:
            table.add_row()
        last = row["target_language"]
        table.add_row(*(_format(row.get(name), COLUMNS[name][1]) for name in filled))
    if not console.is_terminal:  # a file or a pipe has no width; only a terminal's lines must not break
        console.width = max(console.width, LEAST_WIDTH)
    console.print(table)
    console.print(Text(signature, style="dim"), soft_wrap=True)


def _format(value: Figure, form: str) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else format(value, form)


def print_json(rows: Sequence[Mapping[str, Figure]], signature: str, file: TextIO) -> None:
    """One JSON object a line, each with all fields and the signature."""
    for row in rows:
        file.write(json.dumps({**row, "signature": signature}, ensure_ascii=False) + "\n")
