"""Parallel text for training: which files, which licences, which share of each, what is held back.

Only the permissive files are read (``newstest08-13`` is for research use and never enters shipped weights).
"""

from __future__ import annotations

import gzip
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Target language -> the files that hold its pairs.
FILES = {
    "de": ("en-de.tsv.gz", "en-de.europarl-20k.tsv.gz"),
    "zh": ("en-zh.tsv.gz",),
    "ja": ("en-ja.tsv.gz",),
}

#: How often a pair of a source is drawn, relative to its number of pairs; keys are prefixes of the provenance column.
#: Everyday language counts most, since that is what captions are; scripture in old spelling counts least.
SOURCE_WEIGHTS = {
    "tatoeba": 1.0,
    "tanaka": 1.0,
    "mlqe-pe": 1.0,
    "ami": 1.0,
    "x-risawoz": 1.0,
    "europarl": 0.7,
    "l10n": 0.3,
    "pydocs": 0.2,
    "bible": 0.1,
}

#: Share of the training tokens that each target language gets.
LANGUAGE_SHARES = {"de": 0.54, "zh": 0.20, "ja": 0.26}

HELD_OUT_PER_MILLE = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence pair: English ``source``, ``target`` text, ``language`` of the target, sampling ``weight``."""

    source: str
    target: str
    language: str
    weight: float


def source_weight(provenance: str) -> float:
    """The sampling weight of a provenance label.

    Raises:
        KeyError: no entry of `SOURCE_WEIGHTS` fits; a new source must be weighed by a person.
    """
    for prefix, weight in SOURCE_WEIGHTS.items():
        if provenance.startswith(prefix):
            return weight
    raise KeyError(f"no sampling weight for provenance {provenance!r}: add it to SOURCE_WEIGHTS")


def held_out(source: str) -> bool:
    """Whether a pair is kept from training, for tuning.  Decided by its English text, so it holds in all languages."""
    digest = hashlib.blake2b(source.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % 1000 < HELD_OUT_PER_MILLE


def read_pairs(data: Path, language: str) -> Iterator[Pair]:
    """All pairs of one target language under ``data/train``, unusable ones (empty or wildly unequal) left out.

    Raises:
        FileNotFoundError: the data folder lacks a file.
    """
    for name in FILES[language]:
        with gzip.open(data / "train" / name, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, target, provenance, _licence = line.rstrip("\n").split("\t")
                if _usable(source, target):
                    yield Pair(source, target, language, source_weight(provenance))


def _usable(source: str, target: str) -> bool:
    if not source or not target:
        return False
    ratio = len(target.encode()) / len(source.encode())
    return 0.3 < ratio < 3.5


def split(data: Path) -> tuple[dict[str, list[Pair]], dict[str, list[Pair]]]:
    """``(training, held_out)`` pairs by target language."""
    training: dict[str, list[Pair]] = {}
    kept_back: dict[str, list[Pair]] = {}
    for language in FILES:
        training[language], kept_back[language] = [], []
        for pair in read_pairs(data, language):
            (kept_back if held_out(pair.source) else training)[language].append(pair)
        random.Random(0).shuffle(kept_back[language])
    return training, kept_back
