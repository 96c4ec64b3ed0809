"""``python -m redraft.train``: one command makes the demo models, from the data to the GGUF files.

Every stage is saved every few minutes and resumes where it was; finished stages are skipped.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from tokenizers import Tokenizer

from redraft import __version__
from redraft.backends.quantise import FORMATS, quantise
from redraft.train.corpus import split
from redraft.train.export import write_gguf
from redraft.train.loop import Trainer
from redraft.train.model import Decoder, Shape
from redraft.train.recipe import STAGES, VOCABULARY
from redraft.train.restart import read_model, read_tokenizer
from redraft.train.tokenizer import load_tokenizer, train_tokenizer

LICENCE = "Apache-2.0 (weights); data as in ATTRIBUTION.md"


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
    if not (out / "tokenizer.json").exists():
        tokenizer = read_tokenizer(warm_start) if warm_start else train_tokenizer(split(data)[0], VOCABULARY)
        tokenizer.save(str(out / "tokenizer.json"))
    for name in only or list(STAGES):
        final = out / name / "final.pt"
        if not final.exists():
            click.echo(f"stage {name}: {STAGES[name].phase.tokens / 1e6:.1f}M tokens on {processes} x {device}")
            rendezvous = out / f".rendezvous-{os.getpid()}-{name}"
            mp.spawn(_work, (name, data, out, processes, device, warm_start, rendezvous), nprocs=processes)
            (out / name / "last.pt").rename(final)
        if name != "base":
            export(final, load_tokenizer(out / "tokenizer.json"), out, f"redraft-{name}", format)


def _work(
    rank: int, name: str, data: Path, out: Path, processes: int, device: str, warm_start: Path | None, rendezvous: Path
) -> None:
    """One training process."""
    if processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{rendezvous.resolve()}", rank=rank, world_size=processes)
    stage, folder = STAGES[name], out / name
    # The optimizers of a warm start know nothing yet.
    phase = replace(stage.phase, warmup_steps=100) if warm_start else stage.phase
    trainer = Trainer(stage.shape, phase, device)
    if (folder / "last.pt").exists():
        trainer.restore(folder / "last.pt", new_phase=False)
    elif warm_start:
        trainer.model.load_state_dict(read_model(warm_start).state_dict())
    elif stage.start:
        trainer.restore(out / stage.start / "final.pt", new_phase=True)
    trainer.run(split(data)[0], load_tokenizer(out / "tokenizer.json"), folder)
    if processes > 1:
        dist.destroy_process_group()


def export(checkpoint: Path, tokenizer: Tokenizer, out: Path, name: str, format: str) -> Path:
    """Write a checkpoint as ``{name}-f32.gguf`` and in ``format``; returns the latter's path."""
    state = torch.load(checkpoint, map_location="cpu")
    model = Decoder(Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    full, small = out / f"{name}-f32.gguf", out / f"{name}-{format.lower()}.gguf"
    facts = {"general.license": LICENCE, "general.description": f"trained with redraft {__version__}"}
    write_gguf(model, tokenizer, full, name, facts)
    quantise(full, small, format)
    return small


if __name__ == "__main__":
    train()
