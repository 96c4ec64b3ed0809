"""``redraft bench report``: the report on finished runs."""

from __future__ import annotations

from pathlib import Path

import click

from redraft_bench.cli.bench.folder import folder


@click.command(short_help="Write the report of a folder of runs.")
@folder("The folder of the runs.")
def report(out: Path) -> None:
    """Write the report of a folder of runs, with all tables and plots."""
    from redraft_bench.pages.report import write

    click.echo(write(out))
