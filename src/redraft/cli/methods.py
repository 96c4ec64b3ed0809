"""``redraft methods``: the table of decoding methods, made from the registry."""

from __future__ import annotations

import json

import click

from redraft.cli.options import as_json


@click.command(short_help="List the decoding methods.")
@as_json
def methods(as_json: bool) -> None:
    """List the decoding methods with their parts, options and sources."""
    from redraft.methods import all_methods

    if as_json:
        for method in all_methods().values():
            options = {each.name: {"default": each.default, "allowed": each.allowed} for each in method.options}
            row = {"method": method.name, "drafter": method.drafter, "rule": method.rule, "options": options}
            click.echo(json.dumps({**row, "summary": method.summary, "source": method.source}))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "drafter", "acceptance rule", "options (default, range)", "what it does", box=None)
    for method in all_methods().values():
        about = "\n".join(f"{each.name} ({each.default}, {each.span})" for each in method.options)
        summary = f"{method.summary}\n[dim]{method.source}"
        table.add_row(f"[bold]{method.name}[/bold]", method.drafter, method.rule, about, summary)
    Console().print(table)
