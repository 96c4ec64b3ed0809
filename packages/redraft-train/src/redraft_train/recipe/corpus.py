"""Parallel text for training: files, licences, sampling weights, and the held-out part.

All files ``en-*.tsv.gz`` in `FOLDERS` are read, and the turns of `HELD_BY_TESTS`.  Some licences exclude a pair, its
provenance sets its sampling weight, `recipe.clean` unifies its spelling or drops it, `recipe.faithful` drops those that
lose something, and `Thinning` limits how often documentation repeats a pattern.
"""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from redraft.errors import InputError, OptionError
from redraft_bench.eval.sets import TURN
from redraft_bench.eval.spoken import KEPT_BACK, held_out, kept_back
from redraft_train.recipe.clean import clean
from redraft_train.recipe.faithful import ended, faithful

FOLDERS = ("train", "train2", "train3", "train4")
#: Files of pairs whose English a test set holds, of which those of up to `TURN` words are used.
HELD_BY_TESTS = "train/phrases-in-tests.en-{language}.tsv.gz"
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
        "coming-out-simulator": 1.5,
        "covost2(de": 1.5,
        "covost2(en-zh": 1.5,
        "covost2(ja": 1.0,
        "global-storybooks": 1.0,
        "nicky-case": 0.8,
        "pepper-carrot": 1.0,
        "recognizers-times-numbers": 0.8,
        "refugee-phrasebook": 0.5,
        "sepia-assistant": 0.4,
        "tanaka": 0.8,
        "tatoeba": 1.0,
        "xpersona": 0.5,
    },
    "talks": {"ami": 1.5, "bitcoin-talks": 0.8, "europarl": 0.7, "hf-course-subtitles": 1.2, "morevna-lessons": 1.0},
    "prose": {
        "bitcoin.org": 0.5,
        "covost2(zh": 0.3,
        "cwa-app": 0.5,
        "mlqe-pe": 0.8,
        "opensource.guide": 1.0,
        "qald10-questions": 0.8,
        "renpy-tutorial": 0.7,
        "tico-19": 0.8,
    },
    "help and lessons": {
        "agents-course": 0.4,
        "audio-transformers-course": 0.4,
        "course": 0.4,
        "create-ponder": 0.2,
        "elixirschool": 0.25,
        "fastapi-docs": 0.25,
        "hetzner-community": 0.3,
        "learn-git-branching": 0.3,
        "msdocs:OfficeDocs-AlchemyInsights": 0.3,
        "msdocs:mixed-reality": 0.3,
        "osrm-navigation": 0.2,
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


def lines(data: Path, language: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield source, target, provenance and licence of every line of the files of a target language.

    A file of two columns has one provenance, which is the middle of its name; ``BY-SA`` there is its licence.  What
    only tests use is left out.

    Raises:
        OptionError: the data folder has no file of the language.
        InputError: a line has neither two nor four fields.
    """
    phrases = data / HELD_BY_TESTS.format(language=language)
    for path in (*files(data, language), *([phrases] if phrases.exists() else [])):
        described = path.name.removeprefix(f"en-{language}.").removesuffix(".tsv.gz").split(".", 1)
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            for number, row in enumerate(rows, 1):
                fields = row.rstrip("\n").split("\t")
                if len(fields) == 2:
                    fields += [*described, ""][:2]
                if len(fields) != 4:
                    raise InputError(f"{path} must have source, target, provenance and licence in every line", number)
                tested = path.parent.name == KEPT_BACK and kept_back(fields[0])
                if not tested and (path != phrases or len(fields[0].split()) <= TURN):
                    yield fields[0], fields[1], fields[2], fields[3]


def read_pairs(data: Path, language: str) -> Iterator[Pair]:
    """Yield the usable pairs of one target language, without duplicates, and thinned except for held-out ones.

    Raises:
        OptionError: as `lines`, or a provenance has no weight.
        InputError: as `lines`.
    """
    seen: set[tuple[str, str]] = set()
    thinning = Thinning()
    for source, target, provenance, licence in lines(data, language):
        if any(part in licence for part in EXCLUDED_LICENCES):
            continue
        cleaned = clean(source, target, language)
        if not cleaned:
            continue
        cleaned = cleaned[0], ended(*cleaned, language)
        if cleaned in seen or not faithful(*cleaned, language):
            continue
        seen.add(cleaned)
        kind, weight = kind_and_weight(provenance)
        if kind not in REPETITIVE or held_out(cleaned[0]) or thinning.keeps(cleaned[0]):
            yield Pair(*cleaned, language, weight, kind)


def split(data: Path, languages: Sequence[str] = LANGUAGES) -> tuple[dict[str, list[Pair]], dict[str, list[Pair]]]:
    """Return ``(training, held_out)`` pairs by target language; cleaning takes minutes, of which a bar tells."""
    training: dict[str, list[Pair]] = {}
    for_tuning: dict[str, list[Pair]] = {}
    for language in languages:
        training[language], for_tuning[language] = [], []
        pairs = read_pairs(data, language)
        for pair in tqdm(pairs, desc=f"cleaning, {language}", unit="pair", unit_scale=True, mininterval=2, delay=2):
            (for_tuning if held_out(pair.source) else training)[language].append(pair)
        random.Random(0).shuffle(for_tuning[language])
    return training, for_tuning


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
