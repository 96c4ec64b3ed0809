"""What people say, held back from training: short turns, questions, numbers, times, prices, names, greetings.

The set is chosen from the shared data by a rule, so that none of it is part of the project.  Its pairs are those of
`FILES` that no training ever sees: pairs under a share-alike licence, which the recipe leaves out, and others whose
English text has a certain hash.  Some are written as recognisers write them, and some are cut at a comma.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from redraft.captions.languages import parse_language
from redraft.captions.sentence import ends_sentence
from redraft.errors import InputError
from redraft_bench.eval.losses import has_number, lost, names
from redraft_bench.eval.sets import TestSet, data_folder

#: Name of the set.
SPOKEN = "spoken"
#: Folder of the newest spoken data.
KEPT_BACK = "train4"
#: Pairs per mille that are held out for tuning, and those of the newest spoken data that only this set uses.
HELD_OUT_PER_MILLE, KEPT_BACK_PER_MILLE = 5, 100
#: Pairs of each kind.
EACH = 67
#: Files of the set by preference; ``{to}`` is the target language.  One game is large, so it comes last.
FILES = (
    ("train/en-{to}.tsv.gz", "train2/en-{to}.*.tsv.gz", "train4/en-{to}.*.tsv.gz"),
    ("train4/en-{to}.cataclysm.BY-SA.tsv.gz",),
)
#: Files of `FILES` that are used, by a part of their names, and of the first one the provenances.
PEOPLE = (
    *("tatoeba", "tanaka", "cocoa", "ami", "bcontrast", "xsid", "wiktionary-examples", "coming", "phrasebook"),
    *("nicky", "pepper", "sepia", "recognizers", "morevna", "flare"),
)
#: Number of words of an utterance, and characters of the target for one of the source and eight more.
MOST_WORDS, RATIOS = 16, {"de": (0.5, 2.0), "zh": (0.12, 0.7), "ja": (0.2, 1.1)}

_PRICE = re.compile(r"[$€£]\s?\d|\b(dollars?|euros?|pounds?|cents?|yen|bucks)\b", re.IGNORECASE)
_TIME = re.compile(r"\d\s?[ap]\.?m\b|o'clock|\d:\d\d|half past|\b(minute|hour|week|day|year)s? ", re.IGNORECASE)
_GREETING = re.compile(
    r"(good (morning|evening|afternoon|night|day)|hello|hi|hey|welcome|thanks?|(good)?bye|see you|how are you)\b",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\s+")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "..."})
_COMMA = {"de": ",", "zh": "，", "ja": "、"}
#: Half-width marks after a Chinese or Japanese character.
_HALF = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff])[,.?!]")
_FULL = {",": "，", ".": "。", "?": "？", "!": "！"}
#: What is no speech.
_NO_SPEECH = re.compile(r"[\[\]<>{}_*#|/\\]")


def held_out(source: str) -> bool:
    """Whether a pair is held out for tuning; depends only on its English text, so it holds for all languages."""
    return _hash(source) % 1000 < HELD_OUT_PER_MILLE


def kept_back(source: str) -> bool:
    """Whether a pair of the folder `KEPT_BACK` is for this set only; depends only on its English text."""
    return _hash(source) % 1000 < KEPT_BACK_PER_MILLE


def _hash(source: str) -> int:
    return int.from_bytes(hashlib.blake2b(source.encode(), digest_size=4).digest(), "big")


def load_spoken(to: str, limit: int = 0) -> TestSet:
    """Choose the set for a target language.

    Args:
        to: target language, as a tag or an English name.
        limit: maximum number of segments; 0 takes all.

    Raises:
        InputError: the data folder does not have the files, or not in this language.
    """
    language = parse_language(to).code
    kinds: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for patterns in FILES:
        found = sorted(_pairs(patterns, language), key=lambda pair: hashlib.blake2b(pair[0].encode()).digest())
        for source, target in found:
            key = source.casefold().strip(" .!?")
            if key in seen:
                continue
            for kind, pair in _kinds(source, target, language):
                chosen = kinds.setdefault(kind, [])
                if len(chosen) < EACH and not lost(*pair, pair[1], language):
                    chosen.append(pair)
                    seen.add(key)
                    break
    pairs = [pair for kind in sorted(kinds) for pair in kinds[kind]][: limit or None]
    if not pairs:
        raise InputError(
            f"--data spoken is chosen from train*/en-{language}.*.tsv.gz, which {data_folder()} does not have: set "
            "REDRAFT_DATA to the folder of the data (docs/metrics.md), or choose other data, such as --data talk"
        )
    return TestSet(SPOKEN, tuple(source for source, _ in pairs), tuple(target for _, target in pairs))


def _pairs(patterns: tuple[str, ...], language: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of files that no training sees and that look like translations of utterances."""
    low, high = RATIOS.get(language, (0.0, 0.0))
    for path in sorted({path for each in patterns for path in data_folder().glob(each.format(to=language))}):
        if patterns is FILES[0] and ("cataclysm" in path.name or not _of_people(path)):
            continue
        for source, target, described in _lines(path):
            if not _is_of_people(described):
                continue
            source = _SPACES.sub(" ", source).strip().translate(_STRAIGHT)
            never = "BY-SA" in path.name or (kept_back(source) if path.parent.name == KEPT_BACK else held_out(source))
            if not never or _NO_SPEECH.search(source):
                continue
            target = _SPACES.sub(" ", target).strip()
            target = target if language == "de" else _HALF.sub(lambda found: _FULL[found[0]], target)
            ratio = (len(target) + 4 * (low + high)) / (len(source) + 8)
            if low <= ratio <= high and len(source.split()) <= MOST_WORDS:
                yield source, target


def _of_people(path: Path) -> bool:
    return path.name.count(".") == 2 or any(name in path.name for name in PEOPLE)


def _is_of_people(provenance: str) -> bool:
    return not provenance or any(name in provenance for name in PEOPLE)


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield source, target and, if the file has it, provenance."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            yield fields[0], fields[1], fields[2].casefold() if path.name.count(".") == 2 and len(fields) > 2 else ""


def _kinds(source: str, target: str, language: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the kinds that a pair may belong to, with the pair as this kind writes it; the rarest first."""
    pair = source, target
    words = len(source.split())
    whole = ends_sentence(source) and ends_sentence(target)
    if _PRICE.search(source) and has_number(source):
        yield "price", pair
    if _TIME.search(source) and has_number(source):
        yield "time", pair
    if has_number(source):
        yield "number", pair
    if _GREETING.match(source):
        yield "greeting", pair
    if clauses := _first_clause(source, target, language):
        yield "cut", clauses
    if names(source) and whole:
        yield "name", pair
    if words <= 3 and whole:
        yield "turn", pair
    if source.endswith("?") and whole:
        yield "question", pair
    if whole and words >= 4 and not source[1:-1].count('"'):
        yield "unpunctuated", (re.sub(r"[.,!?;:\"]", "", source).lower(), target)


def _first_clause(source: str, target: str, language: str) -> tuple[str, str] | None:
    """Return the first clauses of a pair, if both sides have one comma, as a recogniser cuts at a pause."""
    comma = _COMMA[language]
    if source.count(",") != 1 or target.count(comma) != 1 or not ends_sentence(source):
        return None
    (first, second), begun = source.split(","), target.split(comma)[0]
    if min(len(first.split()), len(second.split())) < 3 or len(begun) < (10 if language == "de" else 4):
        return None
    return f"{first}.", f"{begun}{'.' if language == 'de' else '。'}"
