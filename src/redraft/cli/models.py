"""``redraft models``: list and download models."""

from __future__ import annotations

import json

import click

from redraft.cli.shared.options import as_json, needs
from redraft.errors import ModelError
from redraft.models import SHIPPED, shipped_path
from redraft.models.hub import CATALOGUE, FREE, SPEECH, HubModel, cached_path, fetch, models_folder, speech_folder

EXAMPLES = """\b
Examples:
  redraft models
  redraft models get hy-mt2-1.8b
"""

#: Width of the table in files and pipes.
_WIDEST = 160


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@as_json
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models that ship with Redraft and models to download.

    Download one with `redraft models get NAME`, then use it with `--model NAME`.
    """
    if context.invoked_subcommand is not None:
        return
    rows = [_shipped_row(name) for name in SHIPPED] + [_hub_row(name) for name in (*CATALOGUE, *SPEECH)]
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDEST)
    table = Table(box=None)
    for name in ("model", "size", "licence", "state"):
        table.add_column(name, justify="right" if name == "size" else "left", no_wrap=True)
    table.add_column("good for", overflow="fold")  # the source goes below it, so that the table fits 80 columns
    for row in rows:
        about = f"{row['note']}\n[dim]{row['source']}[/dim]"
        size = f"{row['megabytes']:,} MB"
        table.add_row(f"[bold]{row['model']}[/bold]", size, str(row["licence"]), str(row["state"]), about)
    console.print(table)
    console.print(
        f"\nDownloaded models are kept in {models_folder()} (set by REDRAFT_MODELS).", style="dim", soft_wrap=True
    )
    console.print(
        "Download one: redraft models get NAME. Use it: redraft translate --model NAME, or\n"
        "redraft listen --recogniser sherpa:NAME if it recognises speech.",
        style="dim",
    )


def _shipped_row(name: str) -> dict[str, str | int]:
    path = shipped_path(name)
    size = path.stat().st_size if path.exists() else 0
    note = "trying things out: en to de, ja, zh" if name == "demo" else "drafting for the demo model"
    return _row(name, size / 1e6, FREE, "ships", note, path.name)


def is_downloaded(name: str) -> bool:
    """Whether a model of the hub's lists has been downloaded."""
    try:
        return bool(cached_path(name) or speech_folder(name))
    except ModelError:
        return False


def _hub_row(name: str) -> dict[str, str | int]:
    model = CATALOGUE.get(name) or SPEECH[name]
    state = "downloaded" if is_downloaded(name) else "not downloaded"
    licence, note = "", model.note
    if isinstance(model, HubModel):
        licence, note = model.licence, f"{model.languages} languages; {model.note}"
    return _row(name, model.size * 1000, licence, state, note, model.repository)


def _row(name: str, megabytes: float, licence: str, state: str, note: str, source: str) -> dict[str, str | int]:
    found: dict[str, str | int] = {"model": name, "megabytes": round(megabytes), "licence": licence}
    return {**found, "state": state, "note": note, "source": source}


@models.command(short_help="Download a listed model from the Hugging Face hub.")
@click.argument("name", metavar="NAME", type=click.Choice([*CATALOGUE, *SPEECH]))
@click.option("--revision", default="main", help="Branch, tag or commit of the repository.")
@needs("hub")
def get(name: str, revision: str) -> None:
    """Download a listed model from the Hugging Face hub."""
    click.echo(f"{name}: {fetch(name, revision)}")
