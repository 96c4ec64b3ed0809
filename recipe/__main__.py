"""``python -m recipe``: one command makes the demo models, from the data to the GGUF files.

Every stage is saved every few minutes and resumes where it was; finished stages are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import torch.multiprocessing as mp

from recipe.corpus import cached_split
from recipe.loop import Hardware
from recipe.recipe import EXPORTED, SHIPPED, STAGES, VOCABULARY, Stage
from recipe.stages import FINAL, PAIRS, export, taught, work
from recipe.tokenizer import load_tokenizer, train_tokenizer
from redraft.errors import ModelError
from redraft.models.shape import FORMATS  # that of the quantiser needs llama.cpp

#: Settings that depend on the device.
USUAL: dict[str, dict[str, Any]] = {
    "cpu": {"processes": 2, "scale": 1, "workers": 0},
    "cuda": {"processes": 1, "scale": 8, "workers": 12},
}
#: glibc gives large blocks back to the system at once; keeping them saves a tenth of the time of a step.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000"}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=os.environ.get("REDRAFT_DATA", "../shared/data"),
    help="Folder with train/, as in docs/training.md.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="runs",
    help="Checkpoints, logs and GGUF files go here.",
)
@click.option(
    "--only", multiple=True, type=click.Choice(list(STAGES)), help="Stages to run, repeat.  [default: demo, tiny]"
)
@click.option("--processes", type=click.IntRange(1), help="Training processes of one thread.  [default: 2; 1 on a GPU]")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="What to train on.")
@click.option("--compile/--no-compile", "compiled", default=True, help="Fuse the work between matrix products.")
@click.option("--scale", type=click.IntRange(1), help="Times the batch on a CPU.  [default: 1; 8 on a GPU]")
@click.option("--workers", type=click.IntRange(0), help="Processes that make examples.  [default: 0; 12 for a GPU]")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Stop with a checkpoint after so long.")
@click.option("--export/--no-export", "exported", default=True, help="Write the GGUF files; needs llama.cpp.")
@click.option("--format", type=click.Choice(list(FORMATS)), default="Q8_0", help="Weights of the GGUF files.")
def train(
    data: Path,
    out: Path,
    only: tuple[str, ...],
    exported: bool,
    format: str,
    device: str,
    **chosen: Any,
) -> None:
    """Train the demo models: days on a CPU, minutes on a GPU.  Run again, it resumes where it stopped."""
    out.mkdir(parents=True, exist_ok=True)
    os.environ.update(KEEP_MEMORY)  # for the processes that are started below
    usual = USUAL[device] | {name: value for name, value in chosen.items() if value is not None}
    hardware = Hardware(device=device, **usual)
    if not (out / "tokenizer.json").exists():
        train_tokenizer(cached_split(data, out / PAIRS)[0], VOCABULARY).save(str(out / "tokenizer.json"))
    for name in only or SHIPPED:
        stage, folder = STAGES[name], out / name
        try:
            if (folder / FINAL).exists():
                click.echo(f"stage {name}: finished before")
            else:
                train_stage(name, stage, folder, data, hardware)
        except ModelError as error:
            raise click.ClickException(str(error)) from error
        if not (folder / FINAL).exists():
            click.echo(f"stage {name}: out of time; run the same command again to resume")
            return
        if exported and name in EXPORTED:
            export(folder / FINAL, load_tokenizer(out / "tokenizer.json"), out, f"redraft-{name}", format)


def train_stage(name: str, stage: Stage, folder: Path, data: Path, hardware: Hardware) -> None:
    """Train one stage to its end, from its last checkpoint if there is one.

    Raises:
        ModelError: its teacher has not been run.
    """
    out = folder.parent
    examples = taught(stage, out, data, hardware)
    click.echo(f"stage {name}: {stage.phase.tokens / 1e6:.1f}M tokens on {hardware.processes} x {hardware.device}")
    meet = out / f".rendezvous-{os.getpid()}-{name}"
    task = (stage, folder, data, out / PAIRS, hardware, examples, None, meet)
    mp.spawn(work, task, nprocs=hardware.processes)


if __name__ == "__main__":
    train()
