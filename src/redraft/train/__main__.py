"""``python -m redraft.train``: one command makes the demo models, from the data to the GGUF files.

Every stage is saved every few minutes and resumes where it was; finished stages are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import typer
from tokenizers import Tokenizer

from redraft import __version__
from redraft.backends.quantise import quantise
from redraft.train.corpus import split
from redraft.train.export import write_gguf
from redraft.train.loop import Trainer
from redraft.train.model import Decoder, Shape
from redraft.train.recipe import STAGES, VOCABULARY
from redraft.train.tokenizer import load_tokenizer, train_tokenizer

LICENCE = "Apache-2.0 (weights); data as in ATTRIBUTION.md"


def train(
    data: Annotated[Path, typer.Option(help="Folder with train/, as in docs/training.md.")] = Path(
        os.environ.get("REDRAFT_DATA", "../shared/data")
    ),
    out: Annotated[Path, typer.Option(help="Checkpoints, logs and GGUF files go here.")] = Path("runs"),
    only: Annotated[list[str] | None, typer.Option(help="Stages to run; default all.")] = None,
    processes: Annotated[int, typer.Option(help="Training processes of one thread each; on a GPU, 1.")] = 2,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    format: Annotated[str, typer.Option(help="Weights of the GGUF files: F32, F16, Q8_0.")] = "Q8_0",
) -> None:
    """Train the demo models anew; hours on a CPU."""
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "tokenizer.json").exists():
        train_tokenizer(split(data)[0], VOCABULARY).save(str(out / "tokenizer.json"))
    for name in only or list(STAGES):
        final = out / name / "final.pt"
        if not final.exists():
            typer.echo(f"stage {name}: {STAGES[name].phase.tokens / 1e6:.1f}M tokens on {processes} x {device}")
            rendezvous = out / f".rendezvous-{os.getpid()}-{name}"
            mp.spawn(_work, (name, data, out, processes, device, rendezvous), nprocs=processes)
            (out / name / "last.pt").rename(final)
        if name != "base":
            export(final, load_tokenizer(out / "tokenizer.json"), out, f"redraft-{name}", format)


def _work(rank: int, name: str, data: Path, out: Path, processes: int, device: str, rendezvous: Path) -> None:
    """One training process."""
    if processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{rendezvous.resolve()}", rank=rank, world_size=processes)
    stage, folder = STAGES[name], out / name
    trainer = Trainer(stage.shape, stage.phase, device)
    if (folder / "last.pt").exists():
        trainer.restore(folder / "last.pt", new_phase=False)
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
    typer.run(train)
