"""``redraft bench shape``: write a model with random weights."""

from __future__ import annotations

from pathlib import Path

import click

from redraft.cli.shared.options import Whole, needs
from redraft_bench.models.shape import FORMATS, SHAPES


@click.command(short_help="Write a GGUF with a model's dimensions and random weights.")
@click.option("--like", type=click.Choice(list(SHAPES)), required=True, help="Model whose dimensions to use.")
@click.option(
    "--quant", "--format", "quant", type=click.Choice(list(FORMATS)), default="Q4_K_M", help="Format of the weights."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")
@click.option("--seed", type=Whole(0), default=0, help="Random seed of the weights.")
@needs("gguf")
def shape(like: str, quant: str, out: Path, seed: int) -> None:
    """Write a GGUF with the dimensions of a model and random weights.

    Its output is meaningless, but a pass costs as much as with the real model: measure it with `redraft doctor`.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    from redraft_bench.models.random_gguf import write_random

    columns = SpinnerColumn(), *Progress.get_default_columns()[:3], TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(like, total=1.0)

        def tell(what: str, share: float | None) -> None:
            progress.update(
                task, description=f"{like}: {what}", completed=share or 0.0, total=None if share is None else 1.0
            )

        write_random(SHAPES[like], out, quant, name=f"{like} shape, random weights", seed=seed, tell=tell)
    size, count = out.stat().st_size / 1e9, SHAPES[like].parameters / 1e6
    click.echo(f"{out}: {count:,.1f}M random weights as {quant}, {size:.2f} GB")
