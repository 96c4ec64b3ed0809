"""Self-distillation: a model learns its own best translations, with prefix pairs cut by what it knows itself.

Self-training makes re-translation flicker less (Sen et al. 2023, "Self-training reduces flicker in
retranslation-based simultaneous translation"): of the many translations that a corpus has for similar sentences the
model learns one, its own.  Here it is the best of several by the corpus's translation, so quality rises too; and every
beginning of the sentence is taught a beginning of that same translation (`redraft.finetune.prefixes`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tqdm import tqdm

from recipe.calibrate import Calibration, calibrate, draw
from recipe.corpus import Pair
from recipe.examples import Example, Mixture
from recipe.model import Decoder
from recipe.packed import Packed
from recipe.restart import read_model, read_tokenizer
from recipe.score import score
from recipe.tokenizer import BOS, EOS, target_tag
from redraft.finetune.prefixes import Cuts, Ids, Translated, prefix_pairs

#: Sources that are scored at a time.
PART = 512


@dataclass(frozen=True, slots=True)
class Distillation:
    """How many examples are made, and of what kind.

    Attributes:
        sources: whole sources that the teacher translates.
        samples: sampled translations that compete with the greedy one.
        joined: share of sources of several sentences, 0-1.
        cuts: how prefix pairs are made of each.
        learnt: target languages whose translations become examples; None is all.
        seed: of what is drawn.
    """

    sources: int
    samples: int = 3
    joined: float = 0.4
    cuts: Cuts = field(default_factory=Cuts)
    learnt: tuple[str, ...] | None = None
    seed: int = 0


def translate(
    teacher: Path,
    pairs: Mapping[str, Sequence[Pair]],
    languages: Mapping[str, float],
    how: Distillation,
    outputs: Path,
    processes: int,
) -> list[Calibration]:
    """Sources with the translations of ``teacher``.

    Args:
        teacher: GGUF of a model of the recipe.
        pairs: of the training part, by language.
        languages: share of the sources' ids by target language.
        outputs: where the translations are kept as they come, so that a run that was cut off goes on, and examples of
            another kind can be made of the same ones.
        processes: how many work at the same time, one thread each.
    """
    tokenizer = read_tokenizer(teacher)
    mixture = Mixture(0.0, joined=how.joined, languages=languages)
    asked = draw(pairs, tokenizer, how.sources, how.seed, held_out=False, mixture=mixture)
    return calibrate(teacher, tokenizer, asked, outputs, processes, how.samples)


def distil(teacher: Path, answered: Sequence[Calibration], how: Distillation, file: Path, processes: int) -> None:
    """Write the examples that are learnt of what `translate` has answered.

    Args:
        file: to write, as `recipe.packed.Packed`.
    """
    learnt = [each for each in answered if how.learnt is None or each.language in how.learnt]
    parts = [learnt[start : start + PART] for start in range(0, len(learnt), PART)]
    packed: list[Packed] = []
    with (
        tqdm(total=len(learnt), unit="sentence", desc="prefix pairs", mininterval=2) as bar,
        mp.get_context("spawn").Pool(processes, _load, (teacher, how)) as pool,
    ):
        for part, made in zip(parts, pool.imap(_examples, enumerate(parts)), strict=True):
            packed.append(made)
            bar.update(len(part))
    Packed.joined(packed).save(file)


_loaded: list[tuple[Decoder, Tokenizer, Distillation]] = []


def _load(teacher: Path, how: Distillation) -> None:
    """Start of a scoring process."""
    torch.set_num_threads(1)
    _loaded.append((read_model(teacher).eval(), read_tokenizer(teacher), how))


def _examples(numbered: tuple[int, Sequence[Calibration]]) -> Packed:
    number, part = numbered
    model, tokenizer, how = _loaded[0]
    generator = random.Random(how.seed * 1_000_003 + number)
    return Packed.of(examples(RecipeTeacher(model, tokenizer), part, how.cuts, generator))


def examples(
    teacher: RecipeTeacher, part: Sequence[Calibration], how: Cuts, generator: random.Random
) -> Iterator[Example]:
    """The whole of every translated source, and `Cuts.beginnings` of it."""
    translated = [
        Translated(teacher.text(each.prompt), each.language, each.prompt, each.output, teacher.end)
        for each in part
        if each.output
    ]
    for prompt, learnt in prefix_pairs(teacher, translated, how, generator):
        yield [*prompt, *learnt], len(prompt) - 1


class RecipeTeacher:
    """A model of the recipe, as a `redraft.finetune.prefixes.Teacher`."""

    def __init__(self, model: Decoder, tokenizer: Tokenizer) -> None:
        self._model, self._tokenizer = model, tokenizer
        self.end: int = tokenizer.token_to_id(EOS)

    def prompt(self, source: str, language: str) -> Ids:
        """Ids of ``<s> source <2xx>``."""
        ids = self._tokenizer.encode(source).ids
        return (self._tokenizer.token_to_id(BOS), *ids, self._tokenizer.token_to_id(target_tag(language)))

    def score(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[NDArray[np.float32]]:
        """As `recipe.score.score`."""
        return score(self._model, pairs, self.end)

    def text(self, ids: Sequence[int]) -> str:
        """Special tokens are left out."""
        return str(self._tokenizer.decode(ids))
