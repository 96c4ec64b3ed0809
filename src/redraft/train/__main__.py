"""``python -m redraft.train``: one command makes the demo models, from the data to the GGUF files.

Every stage is saved every few minutes and resumes where it was; finished stages are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
import torch.multiprocessing as mp

from redraft.backends.quantise import FORMATS
from redraft.train.corpus import split
from redraft.train.recipe import EXPORTED, STAGES, VOCABULARY
from redraft.train.restart import read_tokenizer
from redraft.train.stages import export, prepare, work
from redraft.train.tokenizer import load_tokenizer, train_tokenizer

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
@click.option("--only", multiple=True, type=click.Choice(list(STAGES)), help="Stages to run, repeat.  [default: all]")
@click.option("--processes", type=click.IntRange(1), default=2, help="Training processes of one thread; on a GPU, 1.")
@click.option("--device", default="cpu", help="cpu or cuda.")
@click.option(
    "--warm-start",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start from the weights and tokenizer of this GGUF instead of the stage before.",
)
@click.option("--format", type=click.Choice(FORMATS), default="Q8_0", help="Weights of the GGUF files.")
def train(
    data: Path, out: Path, only: tuple[str, ...], processes: int, device: str, warm_start: Path | None, format: str
) -> None:
    """Train the demo models anew; hours on a CPU."""
    out.mkdir(parents=True, exist_ok=True)
    os.environ.update(KEEP_MEMORY)  # for the processes that are started below
    if not (out / "tokenizer.json").exists():
        tokenizer = read_tokenizer(warm_start) if warm_start else train_tokenizer(split(data)[0], VOCABULARY)
        tokenizer.save(str(out / "tokenizer.json"))
    for name in only or list(STAGES):
        final = out / name / "final.pt"
        if not final.exists():
            click.echo(f"stage {name}: {STAGES[name].phase.tokens / 1e6:.1f}M tokens on {processes} x {device}")
            prepare(STAGES[name], out / name, data, processes, warm_start)
            rendezvous = out / f".rendezvous-{os.getpid()}-{name}"
            task = (STAGES[name], out / name, data, processes, device, warm_start, rendezvous)
            mp.spawn(work, task, nprocs=processes)
            (out / name / "last.pt").rename(final)
        if name in EXPORTED:
            export(final, load_tokenizer(out / "tokenizer.json"), out, f"redraft-{name}", format)


if __name__ == "__main__":
    train()
