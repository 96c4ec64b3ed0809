"""Self-distillation: a model learns its own best translations, with prefix pairs cut by what it knows itself.

Self-training makes re-translation flicker less (Sen et al. 2023, "Self-training reduces flicker in
retranslation-based simultaneous translation"): of the many translations that a corpus has for similar sentences the
model learns one, its own.  Here it is the best of several by the corpus's translation, so quality rises too; and every
beginning of the sentence is taught a beginning of that same translation (`redraft.train.prefixes`).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.multiprocessing as mp
from tokenizers import Tokenizer
from tqdm import tqdm

from redraft.train.calibrate import Calibration, calibrate, draw
from redraft.train.corpus import Pair
from redraft.train.examples import Example, Mixture, as_spoken
from redraft.train.model import Decoder
from redraft.train.prefixes import TOLERANCES, at_word_end, score, supported
from redraft.train.restart import read_model, read_tokenizer
from redraft.train.tokenizer import BOS, EOS, target_tag

#: Sources that are scored at a time.
PART = 512


@dataclass(frozen=True, slots=True)
class Distillation:
    """How many examples are made, and of what kind.

    Attributes:
        teacher: the stage whose end translates.
        sources: whole sources that it translates.
        languages: shares of the sources' ids by target language; others are left out.
        samples: sampled translations that compete with the greedy one.
        beginnings: prefix pairs made of each.
        joined: share of sources of several sentences, 0-1.
        spoken: share of sources written as a recogniser does, 0-1.
        tolerance: of the cuts into each language, in nats (`redraft.train.prefixes.supported`).
        seed: of what is drawn.
    """

    teacher: str
    sources: int
    languages: Mapping[str, float]
    samples: int = 3
    beginnings: int = 2
    joined: float = 0.4
    spoken: float = 0.3
    tolerance: Mapping[str, float] = field(default_factory=lambda: TOLERANCES)
    seed: int = 0


def distil(
    teacher: Path,
    pairs: Mapping[str, Sequence[Pair]],
    how: Distillation,
    file: Path,
    processes: int,
) -> None:
    """Write examples to ``file``; the outputs are kept beside the teacher's file, so a run that was cut off goes on.

    Args:
        teacher: GGUF of a model of the recipe.
        pairs: of the training part, by language.
        file: JSON Lines to write: the ids of an example, and where its target begins.
        processes: how many work at the same time, one thread each.
    """
    tokenizer = read_tokenizer(teacher)
    mixture = Mixture(0.0, joined=how.joined, languages=how.languages)
    asked = draw(
        {language: pairs[language] for language in how.languages},
        tokenizer,
        how.sources,
        how.seed,
        held_out=False,
        mixture=mixture,
    )
    answered = calibrate(teacher, tokenizer, asked, teacher.with_suffix(".outputs.jsonl"), processes, how.samples)
    parts = [answered[start : start + PART] for start in range(0, len(answered), PART)]
    part_file = file.with_suffix(".part")
    with (
        part_file.open("w", encoding="utf-8") as out,
        tqdm(total=len(answered), unit="sentence", desc="prefix pairs", mininterval=2) as bar,
        mp.get_context("spawn").Pool(processes, _load, (teacher, how)) as pool,
    ):
        for part, examples in zip(parts, pool.imap(_examples, enumerate(parts)), strict=True):
            out.writelines(json.dumps(example) + "\n" for example in examples)
            bar.update(len(part))
    part_file.replace(file)


def read_examples(file: Path) -> list[Example]:
    """What `distil` has written."""
    with file.open(encoding="utf-8") as lines:
        return [(ids, start) for ids, start in map(json.loads, lines)]


_loaded: list[tuple[Decoder, Tokenizer, Distillation]] = []


def _load(teacher: Path, how: Distillation) -> None:
    """Start of a scoring process."""
    torch.set_num_threads(1)
    _loaded.append((read_model(teacher).eval(), read_tokenizer(teacher), how))


def _examples(numbered: tuple[int, Sequence[Calibration]]) -> list[Example]:
    number, part = numbered
    model, tokenizer, how = _loaded[0]
    return list(examples(model, tokenizer, part, how, random.Random(how.seed * 1_000_003 + number)))


def examples(
    model: Decoder, tokenizer: Tokenizer, part: Sequence[Calibration], how: Distillation, generator: random.Random
) -> Iterator[Example]:
    """The whole of every translated source, and `Distillation.beginnings` of it."""
    end = tokenizer.token_to_id(EOS)
    known = [(each, each.output) for each in part if each.output and not repeats(each.output)]
    wholes = score(model, [(each.prompt, output) for each, output in known], end)
    cut: list[tuple[int, tuple[int, ...]]] = []
    for place, (each, output) in enumerate(known):
        words = tokenizer.decode(each.prompt).split(" ")
        yield _example(_prompt(words, each.language, how, generator, tokenizer), output, end)
        for _ in range(how.beginnings if len(words) > 1 else 0):
            heard = words[: generator.randrange(1, len(words))]
            cut.append((place, _prompt(heard, each.language, how, generator, tokenizer)))
    beginnings = score(model, [(prompt, known[place][1]) for place, prompt in cut], end)
    for (place, prompt), logs in zip(cut, beginnings, strict=True):
        each, output = known[place]
        length = supported(wholes[place], logs, how.tolerance[each.language])
        yield _example(prompt, output[: at_word_end(output, length, each.language, tokenizer)], end)


def repeats(output: Sequence[int]) -> bool:
    """Whether three ids in a row come three times: a model that goes round in circles must not learn it of itself."""
    found = Counter(zip(output, output[1:], output[2:], strict=False))
    return max(found.values(), default=0) >= 3


def _prompt(
    words: Sequence[str], language: str, how: Distillation, generator: random.Random, tokenizer: Tokenizer
) -> tuple[int, ...]:
    text = " ".join(words)
    text = as_spoken(text) if generator.random() < how.spoken else text
    ids = tokenizer.encode(text).ids
    return (tokenizer.token_to_id(BOS), *ids, tokenizer.token_to_id(target_tag(language)))


def _example(prompt: Sequence[int], output: Sequence[int], end: int) -> Example:
    return [*prompt, *output, end], len(prompt) - 1
