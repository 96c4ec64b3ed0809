"""Put trained weights in the place of those that ship, unless they lose more of what people say.

Both translate the set `redraft_bench.eval.spoken`, and a program sees what is empty, cut, or has lost a number, a
name or a negation.  chrF of long sentences shows none of this: weights that gained three points of it answered short
turns with nothing.  Any two models differ in some sentences, so what is new is compared with what is mended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from math import comb
from pathlib import Path

from redraft.captions.sentence import DEFAULT_MARK, as_sentence
from redraft.errors import ModelError
from redraft_bench.eval.losses import LOSSES, lost
from redraft_bench.eval.sets import TestSet
from redraft_bench.eval.spoken import load_spoken
from redraft_train.recipe.corpus import LANGUAGES
from redraft_train.recipe.held_out import translations
from redraft_train.recipe.model import product_type
from redraft_train.recipe.restart import read_model, read_tokenizer
from redraft_train.recipe.teach import RecipeTeacher

#: Language -> one of `LOSSES` -> places of the sentences that have it.
Lost = Mapping[str, Mapping[str, frozenset[int]]]
#: Probability below which what is new is not due to chance.
CHANCE = 0.05


def lost_by(model: Path, load: Callable[[str], TestSet] = load_spoken) -> Lost:
    """Return what a GGUF's greedy translations of the set have lost, for each language.

    Raises:
        ModelError: the file cannot be read, or was not made by the recipe.
        InputError: the data folder does not have the set.
    """
    tokenizer = read_tokenizer(model)
    decoder = read_model(model).eval().to(product_type("cpu"))
    teacher = RecipeTeacher(decoder, tokenizer)
    found: dict[str, Mapping[str, frozenset[int]]] = {}
    for language in LANGUAGES:
        test = load(language)
        prompts = [teacher.prompt(as_sentence(source, DEFAULT_MARK), language) for source in test.sources]
        texts = [text or "" for text in translations(decoder, tokenizer, language, prompts, teacher.end)]
        rows = zip(test.sources, texts, test.references, strict=True)
        each = [lost(*row, language) for row in rows]
        found[language] = {
            name: frozenset(place for place, names in enumerate(each) if name in names) for name in LOSSES
        }
    return found


def by_chance(more: int, fewer: int) -> float:
    """Return how probable it is that at least ``more`` of all sentences that differ are worse (a sign test)."""
    differ = more + fewer
    return sum(comb(differ, worse) for worse in range(more, differ + 1)) / 2**differ


def worse(new: Lost, old: Lost) -> list[str]:
    """Return a phrase for each loss that more sentences have than with the weights that are replaced."""
    phrases = []
    for language, losses in new.items():
        for name, places in losses.items():
            before = old[language][name]
            if by_chance(len(places - before), len(before - places)) < CHANCE:
                phrases.append(f"{name.replace('_', ' ')} {len(places)} instead of {len(before)} into {language}")
    return phrases


def ship(new: Path, old: Path, find: Callable[[Path], Lost] = lost_by) -> dict[str, dict[str, int]]:
    """Copy the file of new weights over that of the old ones; return how often the new ones lose what.

    Raises:
        ModelError: a loss is more frequent beyond chance, or a file cannot be read.
        InputError: the data folder does not have the set.
    """
    found = find(new)
    if phrases := worse(found, find(old)):
        raise ModelError(f"{new.name!r} loses more of what people say than {old.name!r}: {'; '.join(phrases)}")
    part = old.with_suffix(".part")
    shutil.copyfile(new, part)
    part.replace(old)
    return {language: {name: len(places) for name, places in losses.items()} for language, losses in found.items()}
