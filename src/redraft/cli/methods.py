"""``redraft methods``: the table of decoding methods in the registry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from redraft.cli.shared.options import as_json

if TYPE_CHECKING:
    from rich.table import Table

    from redraft.decoding.method import Choice, Method, Option


EXAMPLES = """\b
Examples:
  redraft methods
  redraft methods ssbd
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[METHOD]")
@as_json
def methods(name: str | None, as_json: bool) -> None:
    """List the decoding methods with their parts and sources, or the options of one METHOD."""
    from redraft.decoding.methods import all_methods, get_method

    chosen = [get_method(name)] if name else list(all_methods().values())
    if as_json:
        for method in chosen:
            options = {each.name: _limits(each) for each in method.options}
            row = {"method": method.name, "drafter": method.drafter, "rule": method.rule, "options": options}
            click.echo(json.dumps({**row, "summary": method.summary, "source": method.source}))
        return
    from rich.console import Console

    console = Console()
    console.print(_overview(chosen))
    if name and chosen[0].options:
        console.print(_options(chosen[0]))
    elif not name:
        console.print("List a method's options: [bold]redraft methods NAME[/bold]. Set them: --option NAME=VALUE.")


def _limits(option: Option | Choice) -> dict[str, object]:
    from redraft.decoding.method import Option

    allowed = {"range": [option.low, option.high]} if isinstance(option, Option) else {"words": list(option.words)}
    return {"default": option.default, **allowed}


def _overview(chosen: list[Method]) -> Table:
    from rich.table import Table

    table = Table("method", "what it does", box=None, padding=(0, 2, 0, 0))
    for method in chosen:
        parts = f"draft: {method.drafter}; rule: {method.rule}"
        table.add_row(f"[bold]{method.name}[/bold]", f"{method.summary}\n[dim]{parts}\n{method.source}[/dim]")
    return table


def _options(method: Method) -> Table:
    from rich.table import Table

    table = Table("option", "default", "allowed", "what it is", box=None, padding=(0, 2, 0, 0))
    for each in method.options:
        table.add_row(f"[bold]{each.name}[/bold]", str(each.default), each.allowed, each.help)
    return table
