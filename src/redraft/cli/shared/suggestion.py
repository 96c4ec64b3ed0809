"""The one suggestion with which a command ends."""

from __future__ import annotations

import sys

import click


def suggest(sentence: str) -> None:
    """Suggest what to do next, if somebody looks on: both outputs must be a terminal."""
    if sys.stdout is not None and sys.stdout.isatty() and sys.stderr is not None and sys.stderr.isatty():
        click.echo(click.style(f"Next: {sentence}", dim=True), err=True)
