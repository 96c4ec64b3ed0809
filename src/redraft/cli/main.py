"""The application: its commands, and what an error looks like."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from redraft import __version__
from redraft.cli import demo, doctor, methods, models, translate
from redraft.errors import RedraftError

app = typer.Typer(
    name="redraft",
    help="Live translation: growing, self-correcting transcripts in, fast captions that do not flicker out.\n\n"
    "Start with: redraft demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(translate.translate)
app.command()(demo.demo)
app.add_typer(models.app, name="models")
app.command()(methods.methods)
app.command()(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redraft {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """The options before the command."""


def main() -> None:
    """Run the command line; a refusal is one sentence on standard error and exit status 2."""
    try:
        app()
    except RedraftError as error:
        typer.echo(f"redraft: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader has gone, as with `redraft ... | head`; nothing more can be written, not even on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
