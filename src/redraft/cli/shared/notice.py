"""Sentences for the person at the terminal."""

from __future__ import annotations

import sys

import click


def notice(sentence: object) -> None:
    """Print a sentence to standard error; while captions are redrawn in place, it stands above them.

    ``click.echo`` would write past what stands for standard error then, into the captions, and leave lines of them.
    """
    sys.stderr.write(f"redraft: {sentence}\n")
    sys.stderr.flush()


def suggest(sentence: str) -> None:
    """Suggest what to do next, if standard output and standard error are a terminal."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        click.echo(click.style(f"Next: {sentence}", dim=True), err=True)


def introduce(model: str, beginning: str = "these captions are by") -> None:
    """Say on a terminal that captions are by the demo model, unless the user has chosen it as the default."""
    from redraft.models.hub import chosen_model

    if model == "demo" and chosen_model() is None and sys.stderr.isatty():
        more = "get a real one with `redraft models get hy-mt2-1.8b`, or keep it with `redraft models use demo`"
        notice(f"{beginning} the demo model, which is for trying things out: {more}")
