"""Test sets of aligned sentences, and streams that reveal them a fixed number of words at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from redraft.captions.events import Update
from redraft.captions.formats.read import prefixes
from redraft.captions.languages import parse_language
from redraft.errors import InputError, OptionError, whole
from redraft.signature import text_hash
from redraft_bench.eval.stream import Segment, Stream

#: Test set -> path of the file for one language; ``{to}`` is the other language than English, ``{side}`` the file's.
SETS = {
    "flores200.devtest": "flores200.devtest.{side}.txt",
    "acl6060.dev": "acl6060.dev.{side}.txt",
    "mexpresso": "mexpresso.{side}.txt",
    "wmt20chat.test": "wmt20chat.test.{side}.txt",
    "tatoeba2021": "tatoeba2021.en-{to}.{side}.txt",
}

#: Fields of a pair in JSON Lines.
PAIR = ("source", "reference")

#: Number of words of turns such as "I see.", which belong to the language and not to a test: models are trained on them
#: even if a test has them, so quality is measured without them.
TURN = 3


@dataclass(frozen=True, slots=True)
class TestSet:
    """Aligned segments: ``sources[i]`` is translated as ``references[i]``."""

    __test__ = False  # keeps pytest from collecting the class

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]

    @property
    def hash(self) -> str:
        """Hash of sources and references."""
        return text_hash("\n".join((*self.sources, *self.references)))


def data_folder() -> Path:
    """Return the folder of shared data: ``$REDRAFT_DATA``, otherwise ``../shared/data``."""
    return Path(os.environ.get("REDRAFT_DATA", "../shared/data"))


def read_data(name: str) -> list[str]:
    """Return the lines of a data file, named by its path in the data folder.

    Raises:
        InputError: the file does not exist.
    """
    path = data_folder() / name
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: set REDRAFT_DATA to the folder of the data (docs/metrics.md), "
            "or choose other data, such as --data talk"
        )
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def load_set(name: str, to: str, limit: int = 0, least_words: int = 0, source: str = "en") -> TestSet:
    """Load the first segments of a test set.

    Args:
        name: one of `SETS`.
        to: target language, as a tag or an English name; its primary subtag is part of the file name.
        source: language of the sources, likewise.
        limit: maximum number of segments; 0 takes all.
        least_words: minimum number of source words; shorter segments are skipped.

    Raises:
        OptionError: the set or the language is unknown, or a number is negative.
        InputError: the set is not in the data folder, or not in this language.
    """
    if name not in SETS:
        raise OptionError(f"test set must be one of {', '.join(SETS)}, not {name!r}")
    whole("limit", limit, 0)
    whole("least_words", least_words, 0)
    first, second = parse_language(source).code, parse_language(to).code
    other = first if second == "en" else second
    sources, references = (read_data("test/" + SETS[name].format(to=other, side=side)) for side in (first, second))
    if len(sources) != len(references):
        raise InputError(f"{name} must have as many lines in {first} as in {second}")
    return _test_set(name, zip(sources, references, strict=True), limit, least_words)


def read_pairs(path: Path, limit: int = 0, least_words: int = 0) -> TestSet:
    """Read pairs of a source and its reference: lines with a tab between (``.tsv``), or JSON objects.

    Empty lines are skipped.  A reference may be missing; quotation marks are text.

    Raises:
        InputError: a line is not such a pair.
    """
    of_line = _of_tsv if path.suffix == ".tsv" else _of_json
    pairs = []
    for number, line in lines_of(path):
        source, reference = of_line(line) or ("", "")
        if not source.strip():
            form = "a source, a tab and its reference" if path.suffix == ".tsv" else "a JSON object with source"
            raise InputError(f"{path}, line {number}: this must be {form}, not {line[:60]!r}")
        pairs.append((source, reference.strip()))
    return _test_set(path.stem, pairs, limit, least_words)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not empty, with their numbers; a mark of the byte order is left out."""
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            yield number, line


def _of_tsv(line: str) -> tuple[str, str] | None:
    source, _, reference = line.partition("\t")
    return (source, reference) if "\t" not in reference else None


def _of_json(line: str) -> tuple[str, str] | None:
    try:
        source, reference = map(json.loads(line).get, PAIR)
    except (AttributeError, ValueError):
        return None
    fits = isinstance(source, str) and isinstance(reference, str | None)
    return (source, reference or "") if fits else None


def _test_set(name: str, pairs: Iterable[tuple[str, str]], limit: int, least_words: int) -> TestSet:
    found = [pair for pair in pairs if len(pair[0].split()) >= least_words][: limit or None]
    return TestSet(name, tuple(source for source, _ in found), tuple(reference for _, reference in found))


def lag_stream(test: TestSet, to: str, lag: int = 3) -> Stream:
    """Reveal each source of a test set ``lag`` words at a time (SSBD v2, section 4.1).

    Args:
        test: the set.
        to: language of its references, as a tag or an English name.
        lag: words added by each update; 0 gives each source as one final update.

    Raises:
        OptionError: ``lag`` is negative, or the language is unknown.
        InputError: the set is empty.
    """
    whole("lag", lag, 0)
    language = parse_language(to).code
    segments = (
        Segment(reveal(str(number), source, lag), {language: reference} if reference else {})
        for number, (source, reference) in enumerate(zip(test.sources, test.references, strict=True))
    )
    return Stream(test.name, tuple(segments))


def reveal(utterance: str, text: str, lag: int) -> tuple[Update, ...]:
    """Return the updates that reveal a text ``lag`` words at a time; a single update if ``lag`` is 0."""
    parts = (prefixes(text, lag) if lag else []) or [text.strip()]
    return tuple(Update(utterance, seq, part, seq == len(parts) - 1) for seq, part in enumerate(parts))
