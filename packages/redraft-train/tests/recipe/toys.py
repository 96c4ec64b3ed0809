"""A toy corpus: seven English words, and one character or capital word for each."""

from __future__ import annotations

import gzip
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from redraft_train.recipe.corpus import LANGUAGES, Pair

WORDS = "red blue dog cat sun tree fish".split()
CHARACTERS = dict(zip(WORDS, "上下中人今会休", strict=True))


def translated(text: str, language: str) -> str:
    """Capitals and a mark in German, a character a word in Chinese and Japanese: what the corpus lets through."""
    if language == "de":
        return f"{text.upper()}!"
    return "".join(CHARACTERS[word] for word in text.split(" "))


def toy_pairs(number: int, shortest: int = 2) -> dict[str, list[Pair]]:
    """``number`` pairs a language."""
    generator = random.Random(0)
    pairs = {}
    for language in LANGUAGES:
        texts = [" ".join(generator.choices(WORDS, k=generator.randint(shortest, 6))) for _ in range(number)]
        pairs[language] = [Pair(text, translated(text, language), language, 1.0) for text in texts]
    return pairs


def write_pairs(folder: Path, pairs: Mapping[str, Sequence[Pair]]) -> None:
    """Write a data folder: one file a language."""
    (folder / "train").mkdir(parents=True)
    for language, of_language in pairs.items():
        with gzip.open(folder / "train" / f"en-{language}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{pair.source}\t{pair.target}\ttatoeba\tCC0\n" for pair in of_language)
