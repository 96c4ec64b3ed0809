"""``redraft methods``: the table of decoding methods in the registry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from redraft.cli.shared.notice import notice
from redraft.cli.shared.options import as_json

if TYPE_CHECKING:
    from redraft.decoding.method import Choice, Option

EXAMPLES = """\b
Examples:
  redraft methods
  redraft methods ssbd
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[METHOD]")
@as_json
def methods(name: str | None, as_json: bool) -> None:
    """List the decoding methods with their parts and papers, or the options of one METHOD."""
    from redraft.decoding.methods import all_methods, broken_plug_ins, get_method

    chosen = [get_method(name)] if name else list(all_methods().values())
    for problem in () if name else broken_plug_ins():
        notice(problem)
    if as_json:
        for method in chosen:
            options = {each.name: _limits(each) for each in method.all_options}
            row = {"method": method.name, "drafter": method.drafter, "rule": method.rule, "options": options}
            click.echo(json.dumps({**row, "summary": method.summary, "paper": method.paper}))
        return
    from rich.console import Console
    from rich.table import Table

    layout: dict[str, Any] = {"box": None, "padding": (0, 2, 0, 0)}
    console, overview = Console(), Table("method", "what it does", **layout)
    for method in chosen:
        parts = f"draft: {method.drafter}; rule: {method.rule}"
        overview.add_row(f"[bold]{method.name}[/bold]", f"{method.summary}\n[dim]{parts}\n{method.paper}[/dim]")
    console.print(overview)
    if not name:
        console.print("List a method's options: [bold]redraft methods NAME[/bold]. Set them: --option NAME=VALUE.")
    else:
        table = Table("option", "default", "allowed", "what it is", **layout)
        for each in chosen[0].all_options:
            table.add_row(f"[bold]{each.name}[/bold]", str(each.default), each.allowed, each.help)
        console.print(table)


def _limits(option: Option | Choice) -> dict[str, object]:
    from redraft.decoding.method import Option

    allowed = {"range": [option.low, option.high]} if isinstance(option, Option) else {"words": list(option.words)}
    return {"default": option.default, **allowed}
