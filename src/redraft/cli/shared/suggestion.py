"""What commands say to people who look on: the suggestion with which one ends, and which model they use."""

from __future__ import annotations

import sys

import click

from redraft.models.hub import chosen_model


def suggest(sentence: str) -> None:
    """Suggest what to do next, if somebody looks on: both outputs must be a terminal."""
    if sys.stdout is not None and sys.stdout.isatty() and sys.stderr is not None and sys.stderr.isatty():
        click.echo(click.style(f"Next: {sentence}", dim=True), err=True)


def introduce(model: str, beginning: str = "these captions are by") -> None:
    """Say on a terminal that captions are by the demo model, unless the user has chosen it as the default."""
    if model == "demo" and chosen_model() is None and sys.stderr is not None and sys.stderr.isatty():
        more = "get a real one with `redraft models get hy-mt2-1.8b`, or keep it with `redraft models use demo`"
        click.echo(f"redraft: {beginning} the demo model, which is for trying things out: {more}", err=True)
