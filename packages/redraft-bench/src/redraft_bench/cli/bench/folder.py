"""The option ``--out`` of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def folder(text: str) -> Callable[[Any], Any]:
    """Return the option, with a help text."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("redraft-bench"),
        metavar="FOLDER",
        help=text,
    )
