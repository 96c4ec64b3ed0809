"""Put trained weights in the place of those that ship, unless they lose more of what people say.

Both translate the set `redraft_bench.eval.spoken`, and a program counts what is empty, cut, or has lost a number, a
name or a negation.  chrF of long sentences shows none of this: weights that gained three points of it answered short
turns with nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from redraft.captions.sentence import DEFAULT_MARK, as_sentence
from redraft.errors import ModelError
from redraft_bench.eval.losses import LOSSES, losses
from redraft_bench.eval.sets import TestSet
from redraft_bench.eval.spoken import load_spoken
from redraft_train.recipe.corpus import LANGUAGES
from redraft_train.recipe.held_out import translations
from redraft_train.recipe.model import product_type
from redraft_train.recipe.restart import read_model, read_tokenizer
from redraft_train.recipe.teach import RecipeTeacher

#: Count -> its value, of one language.
Counts = Mapping[str, object]


def counts(model: Path, load: Callable[[str], TestSet] = load_spoken) -> dict[str, Counts]:
    """Return what a GGUF's greedy translations of the set have lost, for each language.

    Raises:
        ModelError: the file cannot be read, or was not made by the recipe.
        InputError: the data folder does not have the set.
    """
    tokenizer = read_tokenizer(model)
    decoder = read_model(model).eval().to(product_type("cpu"))
    teacher = RecipeTeacher(decoder, tokenizer)
    found: dict[str, Counts] = {}
    for language in LANGUAGES:
        test = load(language)
        prompts = [teacher.prompt(as_sentence(source, DEFAULT_MARK), language) for source in test.sources]
        texts = [text or "" for text in translations(decoder, tokenizer, language, prompts, teacher.end)]
        found[language] = losses(test.sources, texts, test.references, language)
    return found


def worse(new: Mapping[str, Counts], old: Mapping[str, Counts]) -> list[str]:
    """Return a phrase for each count that is higher than that of the weights that are replaced."""
    return [
        f"{name.replace('_', ' ')} {new[language][name]} instead of {old[language][name]} into {language}"
        for language in new
        for name in LOSSES
        if int(str(new[language][name])) > int(str(old[language][name]))
    ]


def ship(new: Path, old: Path, count: Callable[[Path], Mapping[str, Counts]] = counts) -> dict[str, Counts]:
    """Copy the file of new weights over that of the old ones; return the counts of the new ones.

    Raises:
        ModelError: a count is higher, or a file cannot be read.
        InputError: the data folder does not have the set.
    """
    found = dict(count(new))
    if phrases := worse(found, count(old)):
        raise ModelError(f"{new.name!r} loses more of what people say than {old.name!r}: {'; '.join(phrases)}")
    part = old.with_suffix(".part")
    shutil.copyfile(new, part)
    part.replace(old)
    return found
