"""``python -m redraft_train.recipe``: `train` makes the demo models, from the data to the GGUF files.

`ship` puts them in the package, and `align` fine-tunes a draft model.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from redraft.errors import RedraftError
from redraft.models import SHIPPED, shipped_path
from redraft.signature import print_json, signature
from redraft_train.recipe import align as alignment
from redraft_train.recipe import average as averaging
from redraft_train.recipe import ship as shipping
from redraft_train.recipe.composition import composition, table
from redraft_train.recipe.corpus import LANGUAGES, SOURCE_WEIGHTS, cached_split, write_split
from redraft_train.recipe.held_out import measure
from redraft_train.recipe.loop import Hardware, spawn
from redraft_train.recipe.recipe import DEFAULT_STAGES, EXPORTED, STAGES, VOCABULARY, Stage
from redraft_train.recipe.restart import model_file, read_tokenizer
from redraft_train.recipe.stages import FINAL, PAIRS, adopt, checkpoint, export, taught, work
from redraft_train.recipe.tokenizer import load_tokenizer, train_tokenizer

#: Default settings by device.
DEVICES: dict[str, dict[str, Any]] = {
    "cpu": {"processes": 2, "scale": 1, "workers": 0},
    "cuda": {"processes": 1, "scale": 8, "workers": 12},
}
#: glibc returns large blocks to the system at once; keeping them saves a tenth of a step's time.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class Recipe(click.Group):
    """Prints expected errors as one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RedraftError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=Recipe, context_settings=SETTINGS)
def recipe() -> None:
    """Train the demo models; docs/training.md describes how and why."""
    os.environ.update(KEEP_MEMORY)  # for child processes


data_option = click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=os.environ.get("REDRAFT_DATA", "../shared/data"),
    help="Folder with train/, as in docs/training.md.",
)
#: Those of the quantiser, which needs llama.cpp.
FORMATS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K_M")
format_option = click.option("--format", type=click.Choice(FORMATS), default="Q8_0", help="Weights of the GGUF files.")


@recipe.command()
@data_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="runs",
    help="Checkpoints, logs and GGUF files go here.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(STAGES)),
    help="Stages to run, repeat.  [default: those of the models that ship]",
)
@click.option("--processes", type=click.IntRange(1), help="Training processes of one thread.  [default: 2; 1 on a GPU]")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="What to train on.")
@click.option("--compile/--no-compile", "compiled", default=True, help="Fuse the work between matrix products.")
@click.option("--scale", type=click.IntRange(1), help="Times the batch on a CPU.  [default: 1; 8 on a GPU]")
@click.option("--workers", type=click.IntRange(0), help="Processes that make examples.  [default: 0; 12 for a GPU]")
@click.option("--within", type=click.FloatRange(0, min_open=True), help="Minutes of a stage, instead of its tokens.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Stop with a checkpoint after so long.")
@click.option("--export/--no-export", "exported", default=True, help="Write the GGUF files; needs llama.cpp.")
@format_option
def train(
    data: Path,
    out: Path,
    only: tuple[str, ...],
    exported: bool,
    format: str,
    device: str,
    **chosen: Any,
) -> None:
    """Train the demo models: days on a CPU, minutes on a GPU.  The same command resumes where it stopped."""
    if exported:
        import redraft_bench.quantise  # noqa: F401  # without llama.cpp, refuses now and not after the training
    settings = DEVICES[device] | {name: value for name, value in chosen.items() if value is not None}
    hardware = Hardware(device=device, **settings)
    check_device(hardware)
    out.mkdir(parents=True, exist_ok=True)
    stages = only or DEFAULT_STAGES
    started = time.monotonic()
    begin_with_shipped(stages, out)
    if not (out / "tokenizer.json").exists():
        train_tokenizer(cached_split(data, out / PAIRS)[0], VOCABULARY).save(str(out / "tokenizer.json"))
    for name in stages:
        stage, folder = STAGES[name], out / name
        if (folder / FINAL).exists():
            click.echo(f"stage {name}: finished before")
        else:
            train_stage(name, stage, folder, data, left(hardware, started))
        if not (folder / FINAL).exists():
            click.echo(f"stage {name}: out of time; run the same command again to resume")
            return
        if exported and name in EXPORTED:
            export(folder / FINAL, load_tokenizer(out / "tokenizer.json"), out, EXPORTED[name], format)


def check_device(hardware: Hardware) -> None:
    """Check that the device can be used.

    Raises:
        click.UsageError: there is no GPU, or several processes would share it.
    """
    if hardware.device == "cuda" and hardware.processes > 1:
        raise click.UsageError("--processes must be 1 with --device cuda")
    if hardware.device == "cuda" and not torch.cuda.is_available():
        raise click.UsageError("--device must be cpu here: torch finds no GPU")


@recipe.command()
@data_option
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="runs", help="Folder of `train`.")
def corpus(data: Path, out: Path) -> None:
    """Print the ids of the training corpus by kind of text, their share, and their share after sampling weights."""
    tokenizer = trained_tokenizer(out)
    for line in table(composition(cached_split(data, out / PAIRS)[0], tokenizer)):
        click.echo(line)


def trained_tokenizer(out: Path) -> Tokenizer:
    """Return the tokenizer of a folder of `train`.

    Raises:
        click.UsageError: there is none.
    """
    if not (out / "tokenizer.json").exists():
        raise click.UsageError(f"there is no tokenizer.json in {str(out)!r}: --out must be a folder of `train`")
    return load_tokenizer(out / "tokenizer.json")


@recipe.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@data_option
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default="runs", help="Folder of `train`.")
@click.option("--kind", type=click.Choice(list(SOURCE_WEIGHTS)), default="everyday", help="Kind of text.")
@click.option("--pairs", type=click.IntRange(1), default=1000, help="Pairs of a language for the loss.")
@click.option("--greedy", type=click.IntRange(1), default=300, help="Those of them that are translated.")
def evaluate(models: tuple[str, ...], data: Path, out: Path, kind: str, pairs: int, greedy: int) -> None:
    """Measure models on held-out pairs: loss, chrF of greedy outputs, and outputs that are empty or do not end.

    MODEL is demo, a GGUF of the recipe, or a checkpoint in --out.  One JSON object a line.
    """
    paths = [model_file(model) for model in models]
    tokenizers = [trained_tokenizer(out) if path.suffix == ".pt" else read_tokenizer(path) for path in paths]
    kept_back = cached_split(data, out / PAIRS)[1]
    chosen = {language: [pair for pair in of if pair.kind == kind][:pairs] for language, of in kept_back.items()}
    for path, tokenizer in zip(paths, tokenizers, strict=True):
        for row in measure(path, tokenizer, chosen, greedy):
            click.echo(json.dumps(row))


@recipe.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="GGUF")
@click.option("--name", type=click.Choice(list(SHIPPED)), default="demo", help="The model that it replaces.")
def ship(model: Path, name: str) -> None:
    """Put GGUF in the place of a model that ships, unless it loses more of what people say.

    Both translate the set spoken, which is chosen from $REDRAFT_DATA. Prints the counts of the new weights, an object a
    line.
    """
    for language, counts in shipping.ship(model, shipped_path(name)).items():
        click.echo(json.dumps({"to": language, **counts}))


@recipe.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("checkpoints", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def average(out: Path, checkpoints: tuple[Path, ...]) -> None:
    """Write the mean of CHECKPOINTS, or GGUF files, to the checkpoint OUT."""
    averaging.average(checkpoints, out)


def begin_with_shipped(stages: Sequence[str], out: Path) -> None:
    """Take the models that ``stages`` continue from the package, if these are not in ``out`` and not trained first."""
    for start in dict.fromkeys(STAGES[name].start for name in stages):
        name = EXPORTED.get(start or "", "").removeprefix("redraft-")
        if start and name in SHIPPED and start not in stages and not (out / start / FINAL).exists():
            adopt(shipped_path(name), out, start)
            click.echo(f"stage {start}: {name}, the model that ships")


def left(hardware: Hardware, started: float) -> Hardware:
    """Return the hardware with the minutes that are left of this run, which ``started`` by `time.monotonic`."""
    if hardware.minutes is None:
        return hardware
    return replace(hardware, minutes=max(1e-6, hardware.minutes - (time.monotonic() - started) / 60))


def train_stage(name: str, stage: Stage, folder: Path, data: Path, hardware: Hardware) -> None:
    """Train one stage to its end, from its last checkpoint if there is one.

    Raises:
        ModelError: its teacher, or the stage that it continues, has not been trained.
    """
    out = folder.parent
    if stage.start is not None and not (folder / "last.pt").exists():
        checkpoint(out, stage.start)
    examples = taught(stage, out, data, hardware)
    if examples and not examples.exists():
        return
    write_split(data, out / PAIRS)  # once, rather than in every process
    length = f"{hardware.within:g} minutes" if hardware.within else f"{stage.phase.tokens / 1e6:.1f}M tokens"
    click.echo(f"stage {name}: {length} on {hardware.processes} x {hardware.device}")
    spawn(work, (stage, folder, data, out / PAIRS, hardware, examples), hardware.processes)


@recipe.command()
@click.option("--large", default="demo", metavar="MODEL", help="The model to follow: demo, or a GGUF of the recipe.")
@click.option("--small", default="demo-tiny", metavar="MODEL", help="The model to fine-tune, of the same vocabulary.")
@data_option
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The aligned model, a GGUF file."
)
@click.option("--to", "-t", multiple=True, type=click.Choice(LANGUAGES), default=LANGUAGES, help="Target; repeat.")
@click.option("--sentences", type=click.IntRange(1), default=30_000, help="Sources that the large model translates.")
@click.option("--held-out", type=click.IntRange(1), default=900, help="Sources to measure by, never learnt.")
@click.option("--tokens", type=click.IntRange(1), default=3_000_000, help="Length of the fine-tuning, in tokens.")
@format_option
@click.option("--seed", type=click.IntRange(0), default=0, help="Random seed of the sources and their order.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, help="Processes of one thread.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of a table.")
def align(large: str, small: str, out: Path, to: tuple[str, ...], as_json: bool, **chosen: Any) -> None:
    """Fine-tune a small model on a large one's outputs, so that more of what it drafts is kept.

    This is the prediction alignment of the BiLD paper (section 3.5.1). The large model's outputs are kept beside the
    new model and used again by a later run. Afterwards a table reports how often the small model's most probable token
    is the large one's, before and after, on sources that were held out.
    """
    languages = tuple(dict.fromkeys(to))
    settings = alignment.Settings(model_file(large), model_file(small), out=out, languages=languages, **chosen)
    alignment.require_data(settings.data)
    sources, tokens = settings.sentences + settings.held_out, f"{settings.tokens / 1e6:g}M tokens"
    plan = f"{sources} sources for the large model, {tokens} for the small one, {settings.processes} x 1 thread"
    click.echo(plan, err=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    aligned, drawn = alignment.align(settings)
    models = {"large": settings.large.name, "small": settings.small.name}
    line = signature(out, "calibration", drawn, settings.seed, **models, tokens=settings.tokens)
    rows = [*alignment.figures(aligned)]
    if as_json:
        print_json(rows, line, sys.stdout)
    else:
        print_rows(rows, line)


def print_rows(rows: Sequence[dict[str, str | int | float]], line: str) -> None:
    """Print the rows of `recipe.align.figures` as a table, with their signature."""
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


if __name__ == "__main__":
    recipe(prog_name="python -m redraft_train.recipe")
