"""Sentences for the person at the terminal while a command runs."""

from __future__ import annotations

import sys


def notice(sentence: str) -> None:
    """Print a sentence to standard error; while captions are redrawn in place, it stands above them.

    ``click.echo`` would write past what stands for standard error then, into the captions, and leave lines of them.
    """
    if sys.stderr is not None:
        sys.stderr.write(f"redraft: {sentence}\n")
        sys.stderr.flush()
