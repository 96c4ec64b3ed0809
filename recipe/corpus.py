"""Parallel text for training: files, licences, sampling weights, and the held-out part.

All files ``en-*.tsv.gz`` in `FOLDERS` are read.  Some licences exclude a pair, its provenance sets its sampling weight,
`recipe.clean` unifies its spelling or drops it, and `Thinning` limits how often documentation repeats a pattern.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipe.clean import clean
from redraft.errors import InputError, OptionError

FOLDERS = ("train", "train2", "train3")
LANGUAGES = ("de", "zh", "ja")

#: Parts of a licence that exclude a pair.  CC BY-SA might be read to cover weights, which ship under Apache-2.0.
#: CDLA-Sharing is used: its section 3.5 states that results carry no obligation.
EXCLUDED_LICENCES = ("BY-SA", "research use", "NC")

#: Sampling weight of a pair by kind of text and source; sources are prefixes of the provenance, the longest match
#: applies.  Captions are mostly everyday speech and talks, so these have the largest weights.  Documentation serves for
#: grammar and words; it has small weights, since otherwise its imperatives and its "Sie" take over.
SOURCE_WEIGHTS = {
    "everyday": {
        "cocoa-mt": 1.5,
        "covost2(de": 1.5,
        "covost2(en-zh": 1.5,
        "covost2(ja": 1.0,
        "global-storybooks": 1.0,
        "tanaka": 0.8,
        "tatoeba": 1.0,
        "xpersona": 0.5,
    },
    "talks": {"ami": 1.5, "europarl": 0.7, "hf-course-subtitles": 1.2},
    "prose": {
        "bitcoin.org": 0.5,
        "covost2(zh": 0.3,
        "cwa-app": 0.5,
        "mlqe-pe": 0.8,
        "opensource.guide": 1.0,
        "renpy-tutorial": 0.7,
        "tico-19": 0.8,
    },
    "help and lessons": {
        "agents-course": 0.4,
        "audio-transformers-course": 0.4,
        "course": 0.4,
        "elixirschool": 0.25,
        "fastapi-docs": 0.25,
        "hetzner-community": 0.3,
        "msdocs:OfficeDocs-AlchemyInsights": 0.3,
        "msdocs:mixed-reality": 0.3,
        "rust-book": 0.5,
        "scratch": 0.4,
        "three-fundamentals": 0.25,
        "webgl-fundamentals": 0.25,
        "webgpu-fundamentals": 0.25,
    },
    "interfaces": {
        "aosp-dialer": 0.4,
        "home-assistant": 0.15,
        "jupyterlab": 0.1,
        "l10n": 0.15,
        "lighthouse": 0.1,
        "matrix-react-sdk": 0.25,
        "mattermost-mobile": 0.25,
        "osm-id": 0.25,
        "renpy-ui": 0.2,
        "wikipedia-app": 0.3,
    },
    "business": {
        "msdocs:Dynamics-365": 0.06,
        "msdocs:OfficeDocs-SkypeForBusiness": 0.08,
        "msdocs:dynamics365smb": 0.06,
        "msdocs:microsoft-graph": 0.06,
        "msdocs:msteams": 0.08,
        "msdocs:office-developer": 0.06,
    },
    "technical": {
        "angular-docs": 0.1,
        "comprehensive-rust": 0.2,
        "electron-docs": 0.06,
        "kubernetes-docs": 0.1,
        "msdocs:AspNetCore": 0.05,
        "msdocs:Docs": 0.05,
        "msdocs:EntityFramework": 0.05,
        "msdocs:PowerShell": 0.05,
        "msdocs:docs": 0.05,
        "msdocs:powerShell": 0.05,
        "node-red": 0.1,
        "pydocs": 0.12,
        "react-docs": 0.25,
        "tensorflow-docs": 0.12,
        "tldr-pages": 0.08,
        "vite-docs": 0.1,
        "vue-docs": 0.1,
    },
    "scripture": {"bible": 0.08},
    "dictionaries": {"cldr": 0.15},
}

#: Maximum number of sources of documentation that differ only in names and numbers, and that begin with the same words.
ALIKE, SAME_OPENING = 3, 50
#: Number of words of an opening.
OPENING = 4
#: Kinds of text in which sentences repeat a pattern.
REPETITIVE = {"interfaces", "business", "technical"}

#: Share of the training tokens by target language.
LANGUAGE_SHARES = {"de": 0.38, "zh": 0.29, "ja": 0.33}

HELD_OUT_PER_MILLE = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence pair: English ``source``, ``target``, its ``language``, sampling ``weight``, and ``kind`` of text."""

    source: str
    target: str
    language: str
    weight: float
    kind: str = ""


def kind_and_weight(provenance: str) -> tuple[str, float]:
    """Return the kind of text and the sampling weight of a provenance label.

    Raises:
        OptionError: `SOURCE_WEIGHTS` has no matching entry; the weight of a new source must be chosen by a person.
    """
    fitting = [
        (len(prefix), kind, weight)
        for kind, sources in SOURCE_WEIGHTS.items()
        for prefix, weight in sources.items()
        if provenance.startswith(prefix)
    ]
    if not fitting:
        raise OptionError(
            f"data: there is no sampling weight for provenance {provenance!r}: add it to recipe.corpus.SOURCE_WEIGHTS"
        )
    return max(fitting)[1:]


class Thinning:
    """Counts patterns of English sources, to drop those that documentation repeats."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def keeps(self, source: str) -> bool:
        """Whether ``source`` is among the first `ALIKE` of its pattern and `SAME_OPENING` of its opening; counts it."""
        pattern = _NUMBER.sub("0", _NAME.sub("_", source)).lower()
        opening = " ".join(source.lower().split(" ")[:OPENING])
        if self._seen[pattern] >= ALIKE or self._seen["^" + opening] >= SAME_OPENING:
            return False
        self._seen.update((pattern, "^" + opening))
        return True


_NUMBER = re.compile(r"\d+([.,]\d+)*")
#: Words with a capital, except the first one; several in a row count as one.
_NAME = re.compile(r"(?<!^)\b[A-Z][\w'-]*(\W+[A-Z][\w'-]*)*")


def held_out(source: str) -> bool:
    """Whether a pair is held out for tuning; depends only on its English text, so it holds for all languages."""
    digest = hashlib.blake2b(source.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % 1000 < HELD_OUT_PER_MILLE


def files(data: Path, language: str) -> list[Path]:
    """Return the files of a target language.

    Raises:
        OptionError: there are none.
    """
    found = sorted(path for folder in FOLDERS for path in (data / folder).glob(f"en-{language}.*tsv.gz"))
    if not found:
        folders = " or ".join(str(data / name) for name in FOLDERS)
        raise OptionError(f"data: no en-{language}.*tsv.gz in {folders}; see docs/training.md")
    return found


def read_pairs(data: Path, language: str) -> Iterator[Pair]:
    """Yield the usable pairs of one target language, without duplicates, and thinned except for held-out ones.

    Raises:
        OptionError: the data folder has no file of the language, or a provenance has no weight.
        InputError: a line does not have four fields.
    """
    seen: set[tuple[str, str]] = set()
    thinning = Thinning()
    for path in files(data, language):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                fields = line.rstrip("\n").split("\t")
                if len(fields) != 4:
                    raise InputError(f"{path} must have source, target, provenance and licence in every line", number)
                source, target, provenance, licence = fields
                if any(part in licence for part in EXCLUDED_LICENCES):
                    continue
                cleaned = clean(source, target, language)
                if not cleaned or cleaned in seen:
                    continue
                seen.add(cleaned)
                kind, weight = kind_and_weight(provenance)
                if kind not in REPETITIVE or held_out(cleaned[0]) or thinning.keeps(cleaned[0]):
                    yield Pair(*cleaned, language, weight, kind)


def split(data: Path) -> tuple[dict[str, list[Pair]], dict[str, list[Pair]]]:
    """Return ``(training, held_out)`` pairs by target language; cleaning takes minutes."""
    training: dict[str, list[Pair]] = {}
    kept_back: dict[str, list[Pair]] = {}
    for language in LANGUAGES:
        training[language], kept_back[language] = [], []
        for pair in read_pairs(data, language):
            (kept_back if held_out(pair.source) else training)[language].append(pair)
        random.Random(0).shuffle(kept_back[language])
    return training, kept_back


def write_split(data: Path, cache: Path) -> None:
    """Write `split` to the file ``cache``, unless it exists: a rented GPU needs only that file.

    Raises:
        OptionError: as `read_pairs`.
        InputError: as `read_pairs`.
    """
    if cache.exists():
        return
    parts = split(data)
    cache.parent.mkdir(parents=True, exist_ok=True)
    part_file = cache.with_suffix(".part")
    with gzip.open(part_file, "wt", encoding="utf-8", compresslevel=5) as out:
        for held, pairs in enumerate(parts):
            for pair in (pair for of_language in pairs.values() for pair in of_language):
                out.write(f"{held}\t{pair.language}\t{pair.weight}\t{pair.kind}\t{pair.source}\t{pair.target}\n")
    part_file.replace(cache)


def cached_split(data: Path, cache: Path) -> tuple[dict[str, list[Pair]], dict[str, list[Pair]]]:
    """Return `split`, from the file ``cache``; it is made if it does not exist (`write_split`)."""
    write_split(data, cache)
    read: list[dict[str, list[Pair]]] = [{language: [] for language in LANGUAGES} for _ in range(2)]
    with gzip.open(cache, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            held_back, language, weight, kind, source, target = line.rstrip("\n").split("\t")
            read[int(held_back)][language].append(Pair(source, target, language, float(weight), kind))
    return read[0], read[1]
