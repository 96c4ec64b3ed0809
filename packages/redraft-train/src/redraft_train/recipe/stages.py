"""Run one stage of the recipe in one process, and export its result.

Separate from the command line, because spawned processes must be able to import it.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from tokenizers import Tokenizer

from redraft import __version__
from redraft.errors import ModelError
from redraft_train.recipe.average import average
from redraft_train.recipe.constructions import constructions
from redraft_train.recipe.corpus import cached_split
from redraft_train.recipe.export import write_gguf
from redraft_train.recipe.held_out import Watch
from redraft_train.recipe.loop import Hardware, Trainer, together
from redraft_train.recipe.model import Decoder
from redraft_train.recipe.packed import Packed
from redraft_train.recipe.recipe import Stage
from redraft_train.recipe.restart import grow, read_model, read_tokenizer
from redraft_train.recipe.teach import teach
from redraft_train.recipe.tokenizer import load_tokenizer

#: The cleaned corpus, stored beside the stages.
PAIRS = "pairs.tsv.gz"
#: Examples made by a teacher.
EXAMPLES = "examples.npz"
#: Number of pairs made from patterns for each language; they weigh little among all pairs (`recipe.examples.PATTERNS`).
CONSTRUCTIONS = 12_000
#: Result of a finished stage, in its folder, and what was trained for it.
FINAL, TRAINED = "final.pt", "trained.pt"
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
    """Run one training process of a stage, from its last checkpoint if there is one.

    A finished stage leaves `FINAL` in its folder, one that ran out of time ``last.pt``.

    Args:
        rank: rank of this process.
        stage: the stage.
        folder: its folder; the tokenizer is beside it.
        data: folder of the corpus.
        cache: file with the cleaned pairs of ``data``.
        hardware: the hardware.
        examples: examples of a teacher as `recipe.packed.Packed`; None without a teacher.
        meet: as in `recipe.loop.together`.
    """
    if hardware.device == "cpu":
        torch.set_num_threads(1)
    with together(rank, hardware.processes, meet):
        trainer = Trainer(stage.shape, stage.phase, hardware)
        if (folder / "last.pt").exists():
            trainer.restore(folder / "last.pt")
        elif stage.start:
            begun = grow(read_model(checkpoint(folder.parent, stage.start)), stage.shape.layers)
            trainer.model.load_state_dict(begun.state_dict())
        if stage.start and stage.phase.said:
            trainer.anchor(read_model(checkpoint(folder.parent, stage.start)))
        distilled = Packed.load(examples) if examples else ()
        pairs, held_out = cached_split(data, cache)
        tokenizer = load_tokenizer(folder.parent / "tokenizer.json")
        watch = None
        if stage.phase.said:
            for language, made in constructions(CONSTRUCTIONS).items():
                pairs[language] += made
            watch = Watch(tokenizer, held_out)
        complete = trainer.run(pairs, tokenizer, folder, stage.phase.every_s, distilled, watch)
        if rank == 0 and complete:
            trained = folder / TRAINED
            save_model(trainer.result(), trained)
            if stage.start and stage.kept:
                average([checkpoint(folder.parent, stage.start), trained], trained, [stage.kept, 1 - stage.kept])
            trained.replace(folder / FINAL)
            (folder / "last.pt").unlink()


def checkpoint(out: Path, name: str) -> Path:
    """Return the path of a stage's result.

    Raises:
        ModelError: the stage has not been run.
    """
    file = out / name / FINAL
    if not file.exists():
        raise ModelError(f"stage {name!r} is not in {str(out)!r}: run it first, with --only {name}")
    return file


def adopt(model: Path, out: Path, name: str) -> None:
    """Make the weights of ``model``, a GGUF of the recipe, the result of stage ``name``; use its vocabulary.

    Raises:
        ModelError: the recipe already has another vocabulary.
    """
    tokenizer, file = read_tokenizer(model), out / "tokenizer.json"
    if file.exists() and load_tokenizer(file).get_vocab() != tokenizer.get_vocab():
        raise ModelError(f"{str(model)!r} has another vocabulary than {str(file)!r}: choose another --out")
    tokenizer.save(str(file))
    (out / name).mkdir(exist_ok=True)
    save_model(read_model(model), out / name / FINAL)


def save_model(model: Decoder, file: Path) -> None:
    """Write a checkpoint of the weights alone, atomically."""
    part = file.with_suffix(".part")
    torch.save({"shape": asdict(model.shape), "model": model.state_dict()}, part)
    part.replace(file)


def taught(stage: Stage, out: Path, data: Path, hardware: Hardware) -> Path | None:
    """Return the file of a teacher's examples for a stage, made if it does not exist; None without a teacher.

    The file does not exist if ``hardware.minutes`` ended the translation; another run continues it.

    Raises:
        ModelError: the teacher has not been trained.
    """
    if stage.teacher is None or stage.distillation is None:
        return None
    file = out / f"{stage.teacher}-{EXAMPLES}"
    if not file.exists():
        teacher = checkpoint(out, stage.teacher)
        parts = out / f"{stage.teacher}-parts"
        made = teach(teacher, out / "tokenizer.json", data, out / PAIRS, stage.distillation, parts, hardware)
        if made is not None:
            made.save(file)
    return file


def export(checkpoint: Path, tokenizer: Tokenizer, out: Path, name: str, format: str) -> Path:
    """Export a checkpoint as ``{name}-f32.gguf`` and in ``format``; return the latter's path."""
    from redraft_bench.quantise import quantise  # needs llama.cpp, which a rented GPU lacks

    full, small = out / f"{name}-f32.gguf", out / f"{name}-{format.lower()}.gguf"
    write_checkpoint(checkpoint, tokenizer, full)
    quantise(full, small, format)
    return small


def write_checkpoint(checkpoint: Path, tokenizer: Tokenizer, out: Path) -> None:
    """Write a checkpoint as a GGUF in 32-bit floats."""
    model = read_model(checkpoint)
    facts = {"general.license": LICENCE, "general.description": f"trained with redraft {__version__}"}
    write_gguf(model, tokenizer, out, out.stem.removesuffix("-f32"), facts)
