"""Translate English sources into every language with a teacher, as training data.

Sequence-level knowledge distillation (Kim and Rush 2016): a corpus has many translations of similar sentences; the
model is trained on only one, the teacher's, which is easier to learn and more stable.  The corpus of one language also
contains English sources that the others lack; the teacher translates these too.  A source prefix is paired with the
prefix of the same translation that it supports (`redraft_train.prefixes`).

A model can be its own teacher: of a greedy and several sampled outputs it then learns the one that is most like the
others (`recipe.consensus`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tqdm import tqdm

from redraft.errors import ModelError
from redraft_train.prefixes import Cuts, Ids, TranslatedSource, prefix_pairs, repeats
from redraft_train.recipe.calibrate import Calibration, draw
from redraft_train.recipe.clean import usable
from redraft_train.recipe.consensus import consensus
from redraft_train.recipe.corpus import Pair, cached_split, write_split
from redraft_train.recipe.examples import MAX_LENGTH, Example, Mixture
from redraft_train.recipe.generate import generate
from redraft_train.recipe.loop import Hardware
from redraft_train.recipe.model import Decoder, product_type
from redraft_train.recipe.packed import Packed
from redraft_train.recipe.restart import read_model
from redraft_train.recipe.score import score
from redraft_train.recipe.tokenizer import BOS, EOS, PAD, load_tokenizer, target_tag

#: Maximum number of cache positions of rows decoded together, by device.
POSITIONS = {"cpu": 16_384, "cuda": 500_000}
#: Processes that translate on a GPU, so that one prepares while the other decodes; more share the GPU by turns.
ON_A_GPU = 2
#: Prompts decoded together differ in length by less than this, or there would be too few for a GPU.
STEP = 4
#: Share of outputs that may be left unfinished.
SPARE = 0.01
#: Sources of a part.  Finished parts survive the end of a run; a small part loses little.
PART = 10_000


@dataclass(frozen=True, slots=True)
class Distillation:
    """Number and kinds of examples.

    Attributes:
        sources: number of whole sources that the teacher translates.
        joined: share of sources of several sentences, 0-1.
        samples: number of sampled outputs that compete with the greedy one; 0 keeps the greedy one.
    """

    sources: int
    joined: float = 0.3
    samples: int = 0


def every_source(pairs: Mapping[str, Sequence[Pair]]) -> dict[str, list[Pair]]:
    """Return for each language the English sources of all languages, with maximum weights and no translations."""
    weights: dict[str, float] = {}
    for pair in (pair for of_language in pairs.values() for pair in of_language):
        weights[pair.source] = max(pair.weight, weights.get(pair.source, 0.0))
    return {language: [Pair(source, "", language, weight) for source, weight in weights.items()] for language in pairs}


def teach(
    teacher: Path,
    tokenizer: Path,
    data: Path,
    cache: Path,
    how: Distillation,
    folder: Path,
    hardware: Hardware,
) -> Packed | None:
    """Make examples of ``teacher``'s translations; parts from earlier runs in ``folder`` are reused.

    After ``hardware.within`` minutes of translation, over all runs, the parts that are finished are all.

    Args:
        teacher: a checkpoint of the recipe or a GGUF.
        tokenizer: file of its tokenizer.
        data: as in `recipe.corpus.cached_split`.
        cache: as in `recipe.corpus.cached_split`.
        how: number and kinds of examples.
        folder: folder of the parts.
        hardware: the hardware.

    Returns:
        The examples; None if ``hardware.minutes`` ended the run.

    Raises:
        ModelError: none of its translations is usable.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = -(-how.sources // PART)
    files = [folder / f"{part}-of-{number}.npz" for part in range(number)]
    missing = [part for part, file in enumerate(files) if not file.exists()]
    spent = Stopwatch(folder / "seconds")
    if missing:
        write_split(data, cache)  # once, rather than in every process
        share = replace(how, sources=-(-how.sources // number))
        task = (teacher, tokenizer, data, cache, share, hardware.device)
        processes = min(ON_A_GPU if hardware.device == "cuda" else hardware.processes, len(missing))
        with mp.get_context("spawn").Pool(processes, _load, task) as pool, tqdm(total=len(missing), unit="part") as bar:
            for part, made in pool.imap_unordered(_part, missing):
                made.save(files[part])
                spent.add()
                bar.update()
                if spent.of_this_run > 60 * (hardware.minutes or float("inf")):
                    return None
                if spent.in_all > 60 * (hardware.within or float("inf")):
                    break
    joined = Packed.joined([Packed.load(file) for file in files if file.exists()])
    if not len(joined):
        raise ModelError(f"model {str(teacher)!r} has translated none of {how.sources} sources: train it for longer")
    return joined


class Stopwatch:
    """Seconds of work, in this run and in all; kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file, self._since = file, time.monotonic()
        self._before = float(file.read_text()) if file.exists() else 0.0

    @property
    def of_this_run(self) -> float:
        """Seconds since this object was made."""
        return time.monotonic() - self._since

    @property
    def in_all(self) -> float:
        """Seconds of all runs."""
        return self._before + self.of_this_run

    def add(self) -> None:
        """Write the seconds of all runs to the file."""
        self._file.write_text(str(self.in_all))


_loaded: list[tuple[Decoder, Tokenizer, Mapping[str, Sequence[Pair]], Distillation]] = []


def _load(teacher: Path, tokenizer: Path, data: Path, cache: Path, how: Distillation, device: str) -> None:
    torch.set_num_threads(1)
    model = read_model(teacher).eval().to(device, product_type(device))
    _loaded.append((model, load_tokenizer(tokenizer), every_source(cached_split(data, cache)[0]), how))


def _part(number: int) -> tuple[int, Packed]:
    model, tokenizer, sources, how = _loaded[0]
    mixture = Mixture(0.0, joined=how.joined)
    asked = draw(sources, tokenizer, how.sources, number, held_out=False, mixture=mixture)
    torch.manual_seed(number)
    answered = list(translated(model, tokenizer, asked, how.samples))
    return number, Packed.of(examples(RecipeTeacher(model, tokenizer), answered, Cuts(), random.Random(number)))


def most(length: int) -> int:
    """Return the maximum output length, including its end, for a prompt of ``length``: 1.5 times as long."""
    return min(length + length // 2 + 8, MAX_LENGTH - length)


def translated(
    model: Decoder, tokenizer: Tokenizer, asked: Sequence[Calibration], samples: int = 0
) -> Iterator[Calibration]:
    """Yield ``asked`` with outputs, short prompts first; those without a finished and `usable` one are left out.

    Args:
        model: the teacher.
        tokenizer: its tokenizer.
        asked: sources without outputs.
        samples: number of sampled outputs that compete with the greedy one, see `recipe.consensus`.
    """
    for group in groups(asked, POSITIONS[model.embedding.weight.device.type] // (1 + samples)):
        for each, candidates in zip(group, _candidates(model, tokenizer, group, samples), strict=True):
            source = tokenizer.decode(each.prompt)
            texts = [tokenizer.decode(output) for output in candidates]
            good = [place for place, text in enumerate(texts) if usable(source, text, each.language)]
            if good:
                best = good[consensus([texts[place] for place in good])]
                yield replace(each, output=candidates[best])


def groups(asked: Sequence[Calibration], positions: int) -> Iterator[list[Calibration]]:
    """Yield groups of prompts of similar length, which take at most ``positions`` of a cache; short ones first."""
    group: list[Calibration] = []
    for each in sorted(asked, key=lambda each: len(each.prompt)):
        length = -(-len(each.prompt) // STEP) * STEP
        if group and (length - len(group[0].prompt) >= STEP or (len(group) + 1) * (length + most(length)) > positions):
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _candidates(
    model: Decoder, tokenizer: Tokenizer, group: Sequence[Calibration], samples: int
) -> Iterator[list[Ids]]:
    """Yield the finished outputs for each of ``group``; the greedy one first."""
    length, pad = max(len(each.prompt) for each in group), tokenizer.token_to_id(PAD)
    padding = [length - len(each.prompt) for each in group]
    prompts = torch.tensor([[pad] * left + list(each.prompt) for left, each in zip(padding, group, strict=True)])
    device, count = model.embedding.weight.device, len(group)
    outputs = generate(
        model,
        prompts.repeat(1 + samples, 1).to(device),
        tokenizer.token_to_id(EOS),
        most(length),
        spare=SPARE,
        sampled_from=count,
        padding=torch.tensor(padding * (1 + samples), device=device),
    )
    for place in range(count):
        yield [tuple(output) for output in outputs[place::count] if output and not repeats(output)]


def examples(
    teacher: RecipeTeacher, part: Sequence[Calibration], how: Cuts, generator: random.Random
) -> Iterator[Example]:
    """Yield every translated source as a whole, and `Cuts.beginnings` prefixes of it."""
    wholes = [
        TranslatedSource(teacher.text(each.prompt), each.language, each.prompt, each.output, teacher.end)
        for each in part
        if each.output
    ]
    for prompt, learnt in prefix_pairs(teacher, wholes, how, generator):
        yield [*prompt, *learnt], len(prompt) - 1


class RecipeTeacher:
    """A model of the recipe as a `redraft_train.prefixes.Teacher`."""

    def __init__(self, model: Decoder, tokenizer: Tokenizer) -> None:
        self._model, self._tokenizer = model, tokenizer
        self.end: int = tokenizer.token_to_id(EOS)

    def prompt(self, source: str, language: str) -> Ids:
        """Return the ids of ``<s> source <2xx>``."""
        ids = self._tokenizer.encode(source).ids
        return (self._tokenizer.token_to_id(BOS), *ids, self._tokenizer.token_to_id(target_tag(language)))

    def score(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[NDArray[np.float32]]:
        """Return log-probabilities; see `recipe.score.score`."""
        return score(self._model, pairs, self.end)

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids without special tokens."""
        return str(self._tokenizer.decode(ids))
