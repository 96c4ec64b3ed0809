"""``redraft methods``: the table of decoding methods, made from the registry."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table

from redraft.cli.options import Json
from redraft.methods import all_methods


def methods(as_json: Json = False) -> None:
    """List the decoding methods with their parts, options and sources."""
    if as_json:
        for method in all_methods().values():
            options = {each.name: {"default": each.default, "range": [each.low, each.high]} for each in method.options}
            row = {"method": method.name, "drafter": method.drafter, "rule": method.rule, "options": options}
            typer.echo(json.dumps({**row, "summary": method.summary, "source": method.source}))
        return
    table = Table("method", "drafter", "acceptance rule", "options (default, range)", "what it does", box=None)
    for method in all_methods().values():
        options = "\n".join(f"{each.name} ({each.default:g}, {each.low:g}-{each.high:g})" for each in method.options)
        table.add_row(
            f"[bold]{method.name}[/bold]",
            method.drafter,
            method.rule,
            options,
            f"{method.summary}\n[dim]{method.source}",
        )
    Console().print(table)
