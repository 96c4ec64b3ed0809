"""``redraft bench report`` and ``redraft bench comet``: the report on finished runs, and COMET scores."""

from __future__ import annotations

from pathlib import Path

import click

from redraft_bench.cli.bench.folder import folder

finished = folder("The folder of the runs.")


@click.command(short_help="Add COMET to the rows of finished runs.")
@finished
@click.option(
    "--with",
    "model",
    default="Unbabel/wmt22-comet-da",
    metavar="NAME|FILE",
    help="COMET model: a name on the hub, or a checkpoint.",
)
def comet(out: Path, model: str) -> None:
    """Score the final translations of all runs in a folder with COMET, and update their page.

    Install unbabel-comet in a separate environment, because it needs older dependencies than the hf extra. The runs can
    come from another one.
    """
    from redraft_bench.bench.report import write
    from redraft_bench.bench.score import add_comet

    for path in add_comet(out, model):
        click.echo(path)
    click.echo(write(out))


@click.command(short_help="Write the report of a folder of runs.")
@finished
def report(out: Path) -> None:
    """Write the report of a folder of runs, with all tables and plots."""
    from redraft_bench.bench.report import write

    click.echo(write(out))
