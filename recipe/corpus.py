"""Parallel text for training: files, licences, sampling weights, and the held-out part.

All files ``en-*.tsv.gz`` in ``train`` and ``train2`` are read.  Some licences exclude a pair, its provenance sets its
sampling weight, and `recipe.clean` unifies its spelling or drops it.
"""

from __future__ import annotations

import gzip
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from recipe.clean import clean

FOLDERS = ("train", "train2")
LANGUAGES = ("de", "zh", "ja")

#: Parts of a licence that exclude a pair.  CC BY-SA might be read to cover weights, which ship under Apache-2.0.
#: CDLA-Sharing is used: its section 3.5 states that results carry no obligation.
EXCLUDED_LICENCES = ("BY-SA", "research use", "NC")

#: Sampling weight of a pair by source; keys are prefixes of the provenance column, the longest match applies.  Everyday
#: speech and talks have the largest weights, since captions are mostly that; documentation, dictionaries and scripture
#: in old spelling have small ones.
SOURCE_WEIGHTS = {
    "agents-course": 0.4,
    "ami": 1.5,
    "audio-transformers-course": 0.4,
    "bible": 0.08,
    "cldr": 0.15,
    "cocoa-mt": 1.5,
    "comprehensive-rust": 0.2,
    "course": 0.4,
    "covost2(ja": 1.0,
    "covost2(zh": 0.3,
    "europarl": 0.7,
    "global-storybooks": 1.0,
    "hf-course-subtitles": 1.2,
    "l10n": 0.15,
    "mlqe-pe": 0.8,
    "opensource.guide": 1.0,
    "pydocs": 0.12,
    "react-docs": 0.25,
    "renpy-tutorial": 0.7,
    "renpy-ui": 0.2,
    "rust-book": 0.5,
    "scratch": 0.4,
    "tanaka": 0.8,
    "tatoeba": 1.0,
    "tensorflow-docs": 0.12,
    "tico-19": 0.8,
    "xpersona": 0.5,
}

#: Share of the training tokens by target language.
LANGUAGE_SHARES = {"de": 0.38, "zh": 0.29, "ja": 0.33}

HELD_OUT_PER_MILLE = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence pair: English ``source``, ``target`` text, ``language`` of the target, sampling ``weight``."""

    source: str
    target: str
    language: str
    weight: float


def source_weight(provenance: str) -> float:
    """Return the sampling weight of a provenance label.

    Raises:
        KeyError: `SOURCE_WEIGHTS` has no matching entry; the weight of a new source must be chosen by a person.
    """
    fitting = [prefix for prefix in SOURCE_WEIGHTS if provenance.startswith(prefix)]
    if not fitting:
        raise KeyError(f"no sampling weight for provenance {provenance!r}: add it to SOURCE_WEIGHTS")
    return SOURCE_WEIGHTS[max(fitting, key=len)]


def held_out(source: str) -> bool:
    """Whether a pair is held out for tuning; depends only on its English text, so it holds for all languages."""
    digest = hashlib.blake2b(source.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % 1000 < HELD_OUT_PER_MILLE


def files(data: Path, language: str) -> list[Path]:
    """Return the files of a target language.

    Raises:
        FileNotFoundError: there are none.
    """
    found = sorted(path for folder in FOLDERS for path in (data / folder).glob(f"en-{language}.*tsv.gz"))
    if not found:
        raise FileNotFoundError(f"no en-{language}.*tsv.gz in {' or '.join(str(data / name) for name in FOLDERS)}")
    return found


def read_pairs(data: Path, language: str) -> Iterator[Pair]:
    """Yield the usable pairs of one target language, without duplicates.

    Raises:
        FileNotFoundError: the data folder has no file of the language.
    """
    seen: set[tuple[str, str]] = set()
    for path in files(data, language):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, target, provenance, licence = line.rstrip("\n").split("\t")
                if any(part in licence for part in EXCLUDED_LICENCES):
                    continue
                cleaned = clean(source, target, language)
                if cleaned and cleaned not in seen:
                    seen.add(cleaned)
                    yield Pair(*cleaned, language, source_weight(provenance))


@lru_cache(maxsize=1)
def split(data: Path) -> tuple[dict[str, list[Pair]], dict[str, list[Pair]]]:
    """Return ``(training, held_out)`` pairs by target language.

    The last result is cached, since cleaning takes minutes.
    """
    training: dict[str, list[Pair]] = {}
    kept_back: dict[str, list[Pair]] = {}
    for language in LANGUAGES:
        training[language], kept_back[language] = [], []
        for pair in read_pairs(data, language):
            (kept_back if held_out(pair.source) else training)[language].append(pair)
        random.Random(0).shuffle(kept_back[language])
    return training, kept_back


def cached_split(data: Path, cache: Path) -> tuple[dict[str, list[Pair]], dict[str, list[Pair]]]:
    """Return `split`, cached in the file ``cache``: cleaning takes minutes, and a rented GPU needs only that file."""
    if not cache.exists():
        parts = split(data)
        part_file = cache.with_suffix(".part")
        with gzip.open(part_file, "wt", encoding="utf-8", compresslevel=5) as out:
            for held, pairs in enumerate(parts):
                for pair in (pair for of_language in pairs.values() for pair in of_language):
                    out.write(f"{held}\t{pair.language}\t{pair.weight}\t{pair.source}\t{pair.target}\n")
        part_file.replace(cache)
        return parts
    read: list[dict[str, list[Pair]]] = [{language: [] for language in LANGUAGES} for _ in range(2)]
    with gzip.open(cache, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            held_back, language, weight, source, target = line.rstrip("\n").split("\t")
            read[int(held_back)][language].append(Pair(source, target, language, float(weight)))
    return read[0], read[1]
