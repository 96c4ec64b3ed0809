"""``redraft models``: list and download models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from redraft.cli.shared.notice import suggest
from redraft.cli.shared.options import as_json, needs
from redraft.errors import ModelError
from redraft.models import SHIPPED, shipped_path
from redraft.models.disk import PROGRAMS, UNFIT, is_on_disk, models_on_disk, size_of
from redraft.models.hub import (
    CATALOGUE,
    SPEECH,
    cached_path,
    choose,
    chosen_model,
    default_model,
    fetch,
    models_folder,
)

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = """\b
Examples:
  redraft models
  redraft models get hy-mt2-1.8b
  redraft models use hy-mt2-1.8b
"""

#: Width of the list in files and pipes.
_WIDEST = 160
#: State of a model that has not been downloaded.
MISSING = "not downloaded"


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@as_json
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models that ship with Redraft, those of Ollama and LM Studio on this machine, and models to download.

    Download one with `redraft models get NAME`. The first one that you download becomes the default of all commands;
    `redraft models use NAME` chooses another one.
    """
    if context.invoked_subcommand is not None:
        return
    rows = _rows()
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDEST)
    _print(rows, console)
    console.print(
        f"Models are downloaded to {_downloads()} (to change that, set REDRAFT_MODELS). Use a model with "
        f"--model NAME, and a speech recogniser with --recogniser sherpa:NAME. The default model is {default_model()}.",
        style="dim",
    )
    suggest("redraft models get hy-mt2-1.8b")


def _downloads() -> str:
    try:
        return str(models_folder())
    except ModelError:
        return "no folder, since there is no home directory"


def _print(rows: Sequence[Mapping[str, str | int]], console: Console) -> None:
    """Print two lines for each model: its facts; what it is good for, and where it is from."""
    from rich.padding import Padding
    from rich.text import Text

    for row in rows:
        languages = f"{row['languages']} languages" if row["languages"] else ""
        state = "" if row["state"] == MISSING else str(row["state"])
        default = "default" if row["default"] else ""
        facts = (f"{row['megabytes']:,} MB", languages, str(row["licence"]), state, default)
        console.print(Text.assemble((str(row["model"]), "bold"), f"  {', '.join(filter(None, facts))}"))
        about = Text.assemble(f"{row['note']}  " * bool(row["note"]), (str(row["provenance"]), "dim"))
        console.print(Padding(about, (0, 0, 0, 2), expand=False))
    console.print()


def _rows() -> list[dict[str, str | int]]:
    """Return what is known of each model."""
    default, listed, rows = default_model(), CATALOGUE | SPEECH, list[dict[str, str | int]]()

    def add(name: str, size: float, languages: int = 0, licence: str = "", **more: str) -> None:
        row: dict[str, str | int] = {"model": name, "megabytes": round(size / 1e6), "languages": languages}
        rows.append({**row, "licence": licence, "default": name == default, **more})

    for name in SHIPPED:
        path = shipped_path(name)
        note = "for trying things out; English to de, ja, zh" if name == "demo" else "drafts for the demo model"
        add(name, size_of(path), licence="Apache-2.0", state="ships", note=note, provenance=path.name)
    for name, file in models_on_disk().items():
        state, size = f"from {PROGRAMS[name.partition(':')[0]]}", size_of(file) if file else 0
        add(name, size, state=state, note="" if file else UNFIT, provenance=str(file or ""))
    for name, each in listed.items():
        state, source = MISSING, each.repository
        with suppress(ModelError):
            cached_path(name, listed)
            state = "downloaded"
        add(name, each.size * 1e9, each.languages, each.licence, state=state, note=each.note, provenance=source)
    return rows


@models.command(short_help="Download a listed model from the Hugging Face hub.")
@click.argument("name", metavar="NAME", type=click.Choice([*CATALOGUE, *SPEECH]))
@click.option("--revision", help="Branch, tag or commit of the repository, instead of the known one.")
@needs("hub")
def get(name: str, revision: str | None) -> None:
    """Download a listed model from the Hugging Face hub, and check the SHA-256 of its files.

    Redraft knows the commit and the SHA-256 of most models. Of others, it gets the newest files. The same command
    checks files that are there. --revision main gets the newest files, which need not be the known ones.
    """
    path, commit = fetch(name, revision)
    click.echo(f"{name}: {path} (commit {commit})")
    if name in CATALOGUE and chosen_model() is None:
        _choose(name)


@models.command(short_help="Choose the default model of all commands.")
@click.argument("name", metavar="MODEL")
def use(name: str) -> None:
    """Choose the default model of all commands: MODEL is a name from the list, or what --model takes.

    `redraft models use demo` goes back to the model that ships.
    """
    from redraft.backends.load import on_transformers, resolve
    from redraft.backends.remote.address import Address, is_remote

    if is_remote(name):
        Address.parse(name)
    elif not on_transformers(name):
        path = resolve(name)
        if not path.is_file():
            raise ModelError(f"model {name!r} does not exist")
        name = name if name in (*SHIPPED, *CATALOGUE) or is_on_disk(name) else str(path.absolute())
    _choose(name)


def _choose(name: str) -> None:
    choose(name)
    click.echo(f"the default model is now {name}; `redraft models use NAME` changes it")
