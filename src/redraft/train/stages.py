"""Runs one stage of the recipe in one process, and exports what a stage has made.

Apart from the command line, since processes that are started anew must be able to import it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from tokenizers import Tokenizer

from redraft import __version__
from redraft.backends.quantise import quantise
from redraft.train.corpus import split
from redraft.train.distil import distil, read_examples, translate
from redraft.train.export import write_gguf
from redraft.train.loop import Trainer
from redraft.train.model import Decoder, Shape
from redraft.train.recipe import Stage
from redraft.train.restart import read_model
from redraft.train.tokenizer import load_tokenizer

#: What a stage learns of the stage before, in its folder.
EXAMPLES = "distilled.jsonl"
LICENCE = "Apache-2.0 (weights); data as in ATTRIBUTION.md"


def work(
    rank: int,
    stage: Stage,
    folder: Path,
    data: Path,
    processes: int,
    device: str,
    warm_start: Path | None,
    rendezvous: Path,
) -> None:
    """One training process of a stage; resumes from its last checkpoint if there is one.

    Args:
        rank, processes: which process this is, and how many train together.
        folder: of the stage; the tokenizer and the other stages lie beside it.
        rendezvous: a file that does not exist yet, by which they find each other.
    """
    if processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{rendezvous.resolve()}", rank=rank, world_size=processes)
    # The optimizers of a warm start know nothing yet.
    phase = replace(stage.phase, warmup_steps=100) if warm_start else stage.phase
    trainer = Trainer(stage.shape, phase, device)
    if (folder / "last.pt").exists():
        trainer.restore(folder / "last.pt", new_phase=False)
    elif warm_start:
        trainer.model.load_state_dict(read_model(warm_start).state_dict())
    elif stage.start:
        trainer.restore(folder.parent / stage.start / "final.pt", new_phase=True)
    distilled = read_examples(folder / EXAMPLES) if stage.distillation else ()
    training = split(data)[0]
    pairs = {language: training[language] for language in phase.languages}
    trainer.run(pairs, load_tokenizer(folder.parent / "tokenizer.json"), folder, distilled=distilled)
    if processes > 1:
        dist.destroy_process_group()


def prepare(stage: Stage, folder: Path, data: Path, processes: int, warm_start: Path | None) -> None:
    """Make the examples that a stage learns from the model before it, unless they are there."""
    file = folder / EXAMPLES
    if stage.distillation is None or file.exists():
        return
    folder.mkdir(exist_ok=True)
    out = folder.parent
    teacher = warm_start or out / f"{stage.start}-f32.gguf"
    if warm_start is None:
        write_checkpoint(out / str(stage.start) / "final.pt", load_tokenizer(out / "tokenizer.json"), teacher)
    outputs = file.with_suffix(".outputs.jsonl")
    answered = translate(teacher, split(data)[0], stage.phase.languages, stage.distillation, outputs, processes)
    distil(teacher, answered, stage.distillation, file, processes)


def export(checkpoint: Path, tokenizer: Tokenizer, out: Path, name: str, format: str) -> Path:
    """Write a checkpoint as ``{name}-f32.gguf`` and in ``format``; returns the latter's path."""
    full, small = out / f"{name}-f32.gguf", out / f"{name}-{format.lower()}.gguf"
    write_checkpoint(checkpoint, tokenizer, full)
    quantise(full, small, format)
    return small


def write_checkpoint(checkpoint: Path, tokenizer: Tokenizer, out: Path) -> None:
    """Write a checkpoint as a GGUF in 32-bit floats."""
    state = torch.load(checkpoint, map_location="cpu")
    model = Decoder(Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    facts = {"general.license": LICENCE, "general.description": f"trained with redraft {__version__}"}
    write_gguf(model, tokenizer, out, out.stem.removesuffix("-f32"), facts)
