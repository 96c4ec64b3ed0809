"""Self-distilled prefix training of a model that the recipe has made, from its GGUF to a new one.

It translates sources of the corpus, learns its best
translations with prefix pairs cut by what it knows itself (`recipe.distil`), and goes on with the corpus beside
them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch.multiprocessing as mp

from recipe.align import require_data, require_recipe
from recipe.calibrate import Calibration
from recipe.corpus import Pair, split
from recipe.distil import Distillation, distil, translate
from recipe.loop import Hardware, batch_size
from recipe.recipe import STEADY, Stage
from recipe.restart import read_model, read_tokenizer
from recipe.stages import EXAMPLES, FINAL, PAIRS, work, write_checkpoint
from redraft.backends.quantise import quantise
from redraft.errors import ModelError, OptionError

#: Shorter sources are not measured by: at a lag of 3 words they come whole.
LEAST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """What is trained, and how much.

    Attributes:
        model: GGUF of a model that the recipe has made.
        data: folder with ``train/``, as for the recipe.
        out: the GGUF to write; what a run leaves to go on from is kept beside it.
        languages: codes of the target languages.
        tokens: length of the training, padding included.
        share: of examples that are the model's own, 0-1; the others are the corpus's.
        distillation: how these are made.
        format: of the weights, one of `redraft.backends.quantise.FORMATS`.
        processes: how many work at the same time, one thread each.
    """

    model: Path
    data: Path
    out: Path
    languages: tuple[str, ...]
    tokens: int
    share: float
    distillation: Distillation
    format: str = "Q8_0"
    processes: int = 1

    @property
    def training(self) -> Path:
        """The folder of what a run that was cut off goes on from."""
        return self.out.with_name(self.out.name + ".training")


def train_prefix(settings: Settings) -> list[Calibration]:
    """Make the trained model; returns the sources with the translations that it has learnt.

    A run with the same settings goes on where an earlier one was cut off; with others, translations of the same sources
    by the same model are used again.

    Raises:
        ModelError: the model was not made by the recipe, or finishes none of its outputs.
        OptionError: the data folder lacks a file, or pairs of a language.
    """
    require_data(settings.data)
    require_recipe(settings.model)
    training = training_pairs(settings.data, settings.languages)
    stage, folder = _stage(settings), settings.training / fingerprint(settings)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = read_tokenizer(settings.model)
    tokenizer.save(str(settings.training / "tokenizer.json"))
    answered = translate(
        settings.model,
        training,
        stage.phase.languages,
        settings.distillation,
        settings.training / "outputs.jsonl",
        settings.processes,
    )
    if not any(each.output for each in answered):
        raise ModelError(f"model {settings.model.name!r} has finished none of its {len(answered)} outputs")
    if not (folder / EXAMPLES).exists():
        distil(settings.model, answered, settings.distillation, folder / EXAMPLES, settings.processes)
    if not (folder / FINAL).exists():
        rendezvous = folder / "rendezvous"
        rendezvous.unlink(missing_ok=True)
        hardware = Hardware(processes=settings.processes)
        # The folder is of this data alone, so what is kept in it cannot be of another.
        task = (
            stage,
            folder,
            settings.data,
            folder / PAIRS,
            hardware,
            folder / EXAMPLES,
            settings.model,
            rendezvous,
        )
        mp.spawn(work, task, nprocs=settings.processes)
    whole = settings.training / f"{settings.out.stem}-f32.gguf"
    write_checkpoint(folder / FINAL, tokenizer, whole)
    quantise(whole, settings.out, settings.format)
    whole.unlink()
    return answered


def training_pairs(data: Path, languages: Sequence[str]) -> dict[str, list[Pair]]:
    """Pairs to learn from, of these languages.

    Raises:
        OptionError: there are none of a language.
    """
    training = split(data)[0]
    for language in languages:
        if not training[language]:
            raise OptionError(f"data: folder {str(data)!r} has too few pairs of language {language!r}")
    return {language: training[language] for language in languages}


def _stage(settings: Settings) -> Stage:
    """`STEADY` for this model, of this length."""
    phase = replace(
        STEADY,
        tokens=settings.tokens,
        distilled=settings.share,
        batch=batch_size(settings.tokens, settings.processes),
        languages={tag: share for tag, share in STEADY.languages.items() if tag in settings.languages},
        seed=settings.distillation.seed,
    )
    return Stage(read_model(settings.model).shape, phase, distillation=settings.distillation)


def fingerprint(settings: Settings) -> str:
    """12 hex digits that tell runs of different models or settings apart."""
    chosen = asdict(settings) | {"model": "", "out": "", "format": "", "data": str(settings.data.resolve())}
    digest = hashlib.sha256(settings.model.read_bytes())
    digest.update(json.dumps(chosen, sort_keys=True).encode())
    return digest.hexdigest()[:12]


def held_out_pairs(data: Path, language: str, number: int, seed: int) -> list[Pair]:
    """At most ``number`` pairs of a language to measure by, of `LEAST_WORDS` source words or more, drawn by weight."""
    generator = random.Random(seed)
    pairs = [pair for pair in split(data)[1][language] if len(pair.source.split(" ")) >= LEAST_WORDS]
    # Weighted sampling without replacement (Efraimidis and Spirakis 2006).
    return sorted(pairs, key=lambda pair: -(generator.random() ** (1 / pair.weight)))[:number]
