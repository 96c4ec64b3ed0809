"""``redraft train``: its options; `recipe` does the work."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from redraft.cli import options as common
from redraft.cli.train_prefix import FORMATS, LANGUAGES, needing, prefix

EXAMPLES = """\b
Examples:
  redraft train align --data ../shared/data --out aligned.gguf
  redraft train align --data ../shared/data --out german.gguf --to de --sentences 5000
"""


@click.group(epilog=EXAMPLES, short_help="Train models further.", invoke_without_command=True)
@click.pass_context
def train(context: click.Context) -> None:
    """Train models further; needs the `train` extra, or for models of transformers the `lora` extra.

    The demo models themselves are made by `python -m recipe`.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


train.add_command(prefix)


@train.command(epilog=EXAMPLES, short_help="Fine-tune a small model on a large one's outputs.")
@click.option("--large", default="demo", metavar="MODEL", help="The model to follow: demo, or a GGUF of the recipe.")
@click.option("--small", default="demo-tiny", metavar="MODEL", help="The model to fine-tune, of the same vocabulary.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    required=True,
    envvar="REDRAFT_DATA",
    show_envvar=True,
    help="Folder with train/, as in docs/training.md.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The aligned model, a GGUF file."
)
@click.option("--to", "-t", multiple=True, type=click.Choice(LANGUAGES), default=LANGUAGES, help="Target; repeat.")
@click.option("--sentences", type=common.Whole(1), default=30_000, help="Sources that the large model translates.")
@click.option("--held-out", type=common.Whole(1), default=900, help="Sources to measure by, never learnt.")
@click.option("--tokens", type=common.Whole(1), default=3_000_000, help="Length of the fine-tuning, in tokens.")
@click.option("--format", type=click.Choice(FORMATS), default="Q8_0", help="Weights of the GGUF file.")
@click.option("--seed", type=common.Whole(0), default=0, help="Of the sources drawn and of their order.")
@click.option("--processes", type=common.Whole(1, 64), default=2, help="Processes of one thread.")
@common.as_json
def align(
    large: str,
    small: str,
    data: Path,
    out: Path,
    to: tuple[str, ...],
    sentences: int,
    held_out: int,
    tokens: int,
    format: str,
    seed: int,
    processes: int,
    as_json: bool,
) -> None:
    """Fine-tune a small model on a large one's outputs, so that what it drafts is kept more often.

    This is the prediction alignment of the BiLD paper (section 3.5.1). The large model's outputs are kept beside the
    new model and used again by a later run. Afterwards a table tells how often the small model's most probable token
    is the large one's, before and after, on sources that were held out.
    """
    with needing("train"):
        from recipe import align as alignment
        from recipe.__main__ import KEEP_MEMORY
    from redraft.backends.load import resolve
    from redraft.measure.eval.signature import signature

    settings = alignment.Settings(
        large=resolve(large),
        small=resolve(small),
        data=data,
        out=out,
        languages=tuple(dict.fromkeys(to)),
        sentences=sentences,
        held_out=held_out,
        tokens=tokens,
        format=format,
        seed=seed,
        processes=processes,
    )
    alignment.require_data(data)
    os.environ.update(KEEP_MEMORY)  # for the processes that are started
    plan = f"{sentences + held_out} sources for the large model, {tokens / 1e6:g}M tokens for the small one"
    click.echo(f"{plan}, {processes} x 1 thread", err=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    aligned, drawn = alignment.align(settings)
    rows = [*alignment.figures(aligned)]
    line = signature(
        out, "calibration", drawn, seed, large=settings.large.name, small=settings.small.name, tokens=tokens
    )
    _print(rows, line, as_json)


def _print(rows: list[dict[str, str | int | float]], line: str, as_json: bool) -> None:
    if as_json:
        from redraft.measure.eval.table import print_json

        print_json(rows, line, sys.stdout)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("to", box=None)
    for heading in ("sentences", "unfinished", "positions", "agreement", "aligned", "nats", "aligned"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["target_language"]),
            *(str(row[name]) for name in ("sentences", "unfinished", "positions")),
            *(f"{row[f'agreement_{when}']:.1%}" for when in ("before", "after")),
            *(f"{row[f'cross_entropy_{when}']:.3f}" for when in ("before", "after")),
        )
    console = Console()
    console.print(table)
    console.print(f"[dim]{line}[/dim]", highlight=False, soft_wrap=True)
