"""Runs one stage of the recipe in one process, and exports what a stage has made.

Apart from the command line, since processes that are started afresh must be able to import it.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from tokenizers import Tokenizer

from recipe.corpus import cached_split
from recipe.export import write_gguf
from recipe.loop import Hardware, Trainer
from recipe.packed import Packed
from recipe.recipe import Stage
from recipe.restart import read_model
from recipe.teach import teach
from recipe.tokenizer import load_tokenizer
from redraft import __version__
from redraft.errors import ModelError

#: The cleaned corpus, beside the stages.
PAIRS = "pairs.tsv.gz"
#: What is learnt of a teacher.
EXAMPLES = "examples.npz"
#: What a finished stage has made, in its folder.
FINAL = "final.pt"
LICENCE = "Apache-2.0 (weights); data as in ATTRIBUTION.md"


def work(
    rank: int,
    stage: Stage,
    folder: Path,
    data: Path,
    cache: Path,
    hardware: Hardware,
    examples: Path | None,
    meet: Path,
) -> None:
    """One training process of a stage; resumes from its last checkpoint if there is one.

    The finished stage leaves `FINAL` in its folder, one that is out of time ``last.pt``.

    Args:
        rank: which process this is.
        folder: of the stage; the tokenizer is beside it.
        cache: where the cleaned pairs of ``data`` are kept.
        examples: what it learns of a teacher, as `recipe.packed.Packed`.
        meet: a file that does not exist yet, by which the processes find each other.
    """
    if hardware.device == "cpu":
        torch.set_num_threads(1)
    if hardware.processes > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{meet.resolve()}", rank=rank, world_size=hardware.processes
        )
    trainer = Trainer(stage.shape, stage.phase, hardware)
    if (folder / "last.pt").exists():
        trainer.restore(folder / "last.pt")
    distilled = Packed.load(examples) if examples else ()
    pairs = cached_split(data, cache)[0]
    complete = trainer.run(pairs, load_tokenizer(folder.parent / "tokenizer.json"), folder, distilled=distilled)
    if rank == 0 and complete:
        (folder / "last.pt").rename(folder / FINAL)
    if hardware.processes > 1:
        dist.destroy_process_group()


def checkpoint(out: Path, name: str) -> Path:
    """What a stage has made.

    Raises:
        ModelError: it has not been run.
    """
    file = out / name / FINAL
    if not file.exists():
        raise ModelError(f"stage {name!r} is not in {str(out)!r}: run it first, with --only {name}")
    return file


def taught(stage: Stage, out: Path, data: Path, hardware: Hardware) -> Path | None:
    """The file of what a stage learns of its teacher, made unless it is there; None without a teacher.

    Raises:
        ModelError: the teacher has not been run.
    """
    if stage.teacher is None or stage.distillation is None:
        return None
    teacher, file = checkpoint(out, stage.teacher), out / f"{stage.teacher}-{EXAMPLES}"
    if not file.exists():
        processes = max(hardware.processes, hardware.workers)
        made = teach(
            teacher,
            out / "tokenizer.json",
            data,
            out / PAIRS,
            stage.distillation,
            out / f"{stage.teacher}-parts",
            processes,
            hardware.device,
        )
        made.save(file)
    return file


def export(checkpoint: Path, tokenizer: Tokenizer, out: Path, name: str, format: str) -> Path:
    """Write a checkpoint as ``{name}-f32.gguf`` and in ``format``; returns the latter's path."""
    from redraft.backends.quantise import quantise  # needs llama.cpp, which a rented GPU lacks

    full, small = out / f"{name}-f32.gguf", out / f"{name}-{format.lower()}.gguf"
    write_checkpoint(checkpoint, tokenizer, full)
    quantise(full, small, format)
    return small


def write_checkpoint(checkpoint: Path, tokenizer: Tokenizer, out: Path) -> None:
    """Write a checkpoint as a GGUF in 32-bit floats."""
    model = read_model(checkpoint)
    facts = {"general.license": LICENCE, "general.description": f"trained with redraft {__version__}"}
    write_gguf(model, tokenizer, out, out.stem.removesuffix("-f32"), facts)
