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
from redraft.errors import ModelError
from redraft.train.corpus import LANGUAGE_SHARES, cached_split
from redraft.train.distil import distil, read_examples, translate
from redraft.train.export import write_gguf
from redraft.train.loop import Hardware, Trainer
from redraft.train.model import Decoder, Shape
from redraft.train.recipe import Stage
from redraft.train.restart import read_model
from redraft.train.tokenizer import load_tokenizer

#: The cleaned corpus, beside the stages.
PAIRS = "pairs.tsv.gz"
#: What a stage learns of its teacher, in its folder.
EXAMPLES = "distilled.jsonl"
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
    start: Path | None,
    meet: Path,
) -> None:
    """One training process of a stage; resumes from its last checkpoint if there is one.

    The finished stage leaves `FINAL` in its folder, one that is out of time ``last.pt``.

    Args:
        rank: which process this is.
        folder: of the stage; the tokenizer is beside it.
        cache: where the cleaned pairs of ``data`` are kept.
        start: what it begins with, as of `origin`; None is random weights.
        meet: a file that does not exist yet, by which the processes find each other.
    """
    if hardware.device == "cpu":
        torch.set_num_threads(1)
    if hardware.processes > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{meet.resolve()}", rank=rank, world_size=hardware.processes
        )
    from_gguf = start is not None and start.name != FINAL
    # The optimizers of a warm start know nothing yet.
    phase = replace(stage.phase, warmup_steps=100) if from_gguf else stage.phase
    trainer = Trainer(stage.shape, phase, hardware)
    if (folder / "last.pt").exists():
        trainer.restore(folder / "last.pt", new_phase=False)
    elif start and from_gguf:
        trainer.model.load_state_dict(read_model(start).state_dict())
    elif start:
        trainer.restore(start, new_phase=True)
    distilled = read_examples(folder / EXAMPLES) if stage.distillation else ()
    training = cached_split(data, cache)[0]
    pairs = {language: training[language] for language in phase.languages}
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


def origin(out: Path, name: str, warm_start: Path | None) -> Path:
    """What a stage has made, or the GGUF of a warm start where it has not been run.

    Raises:
        ModelError: there is neither.
    """
    if warm_start and not (out / name / FINAL).exists():
        return warm_start
    return checkpoint(out, name)


def prepare(stage: Stage, folder: Path, data: Path, processes: int, warm_start: Path | None) -> None:
    """Make the examples that a stage learns of its teacher, unless they are there.

    Raises:
        ModelError: the teacher has not been run, and there is no warm start.
    """
    file = folder / EXAMPLES
    if stage.distillation is None or stage.teacher is None or file.exists():
        return
    out = folder.parent
    teacher = origin(out, stage.teacher, warm_start)
    if teacher.name == FINAL:
        made, teacher = teacher, out / f"{stage.teacher}-f32.gguf"
        write_checkpoint(made, load_tokenizer(out / "tokenizer.json"), teacher)
    folder.mkdir(exist_ok=True)
    # Beside the stages: several learn of one teacher.
    outputs = out / f"{teacher.stem}.outputs.jsonl"
    answered = translate(
        teacher, cached_split(data, out / PAIRS)[0], LANGUAGE_SHARES, stage.distillation, outputs, processes
    )
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
