"""Prefix pairs whose targets end where the source prefix no longer supports them.

A target cut in proportion to its source would make a model guess words that it has not read, or hold back words that
it could translate.  Here the cut follows the model's own alignment of the sentences: the translation of the whole
sentence is scored after the source prefix, token by token, and ends before the first token that is much less probable
after the prefix than after the whole source:

    log p(y_t | whole source, y_<t) - log p(y_t | source prefix, y_<t) > tolerance

The end token is excluded from both distributions, since a model trained on prefix pairs ends where it was taught to.
All targets of a sentence are prefixes of the same translation, so a growing source retracts nothing.

The rule is the same for every model; a `Teacher` implements prompting and scoring.
"""

from __future__ import annotations

import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft.captions.languages import parse_language
from redraft_train.spoken import as_recognised

Ids: TypeAlias = tuple[int, ...]
#: Type of a teacher's prompts.
P = TypeVar("P")

#: Default tolerance in nats.  With 2 to 3, German and Chinese targets are about 90 % as long as proportional ones.
TOLERANCE = 2.5


@dataclass(frozen=True, slots=True)
class Cuts:
    """How prefix pairs are made from a translated source.

    Attributes:
        beginnings: number of prefix pairs per source.
        spoken: share of sources written in the style of a recogniser, 0-1.
        tolerance: tolerance of the cuts in nats, at least 0.
    """

    beginnings: int = 2
    spoken: float = 0.3
    tolerance: float = TOLERANCE


@dataclass(frozen=True, slots=True)
class TranslatedSource(Generic[P]):
    """A whole source with the teacher's translation.

    Attributes:
        source: the text.
        language: code or tag of the target language.
        prompt: the teacher's prompt.
        output: ids of its translation, without the end token.
        end: id of the end token.
    """

    source: str
    language: str
    prompt: P
    output: Ids
    end: int


class Teacher(Protocol[P]):
    """A model that generates its own training data."""

    def prompt(self, source: str, language: str) -> P:
        """Return the prompt for translating ``source``."""

    def score(self, pairs: Sequence[tuple[P, Ids]]) -> list[NDArray[np.float32]]:
        """For each prompt and output, return the (length,) log-probabilities of its tokens, without end tokens."""

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids; incomplete characters become U+FFFD."""


def prefix_pairs(
    teacher: Teacher[P], translated: Sequence[TranslatedSource[P]], how: Cuts, generator: random.Random
) -> Iterator[tuple[P, Ids]]:
    """Yield training examples with end tokens: every whole source, then its prefixes.

    Repetitive outputs are left out, since training on them makes them more frequent.
    """
    translated = [each for each in translated if not repeats(each.output)]
    wholes = teacher.score([(each.prompt, each.output) for each in translated])
    cut: list[tuple[int, P]] = []

    def prompt(words: Sequence[str], language: str) -> P:
        text = " ".join(words)
        return teacher.prompt(as_recognised(text, generator) if generator.random() < how.spoken else text, language)

    for place, each in enumerate(translated):
        words = each.source.split(" ")
        yield prompt(words, each.language), (*each.output, each.end)
        for _ in range(how.beginnings if len(words) > 1 else 0):
            cut.append((place, prompt(words[: generator.randrange(1, len(words))], each.language)))
    beginnings = teacher.score([(begun, translated[place].output) for place, begun in cut])
    for (place, begun), logs in zip(cut, beginnings, strict=True):
        each = translated[place]
        length = supported(wholes[place], logs, how.tolerance)
        kept = at_word_end(each.output, length, spaced(each.language), teacher.text)
        yield begun, (*each.output[:kept], each.end)


def repeats(output: Sequence[int]) -> bool:
    """Whether three successive ids occur three times."""
    found = Counter(zip(output, output[1:], output[2:], strict=False))
    return max(found.values(), default=0) >= 3


def supported(whole: NDArray[np.float32], beginning: NDArray[np.float32], tolerance: float = TOLERANCE) -> int:
    """Return how many tokens of an output the source prefix supports.

    Args:
        whole: (length,) log-probabilities of the output's tokens after the whole source.
        beginning: (length,) their log-probabilities after the source prefix.
        tolerance: tolerance in nats, at least 0.
    """
    missing = np.flatnonzero(whole - beginning > tolerance)
    return int(missing[0]) if len(missing) else len(whole)


def at_word_end(output: Sequence[int], length: int, spaced: bool, text: Callable[[Sequence[int]], str]) -> int:
    """Return the largest number of tokens up to ``length`` that ends at the end of a word.

    Args:
        output: ids of the output.
        length: maximum number of tokens.
        spaced: whether words are separated by spaces; otherwise the end of any character will do.
        text: decodes ids, see `Teacher.text`.
    """
    if length >= len(output):
        return len(output)
    for kept in range(length, 0, -1):
        begun, following = text(output[:kept]), text(output[: kept + 1])
        if not begun.endswith("\N{REPLACEMENT CHARACTER}") and not (
            spaced and _in_word(following[len(begun) : len(begun) + 1])
        ):
            return kept
    return 0


def _in_word(character: str) -> bool:
    """Whether a character continues a word: a letter, a digit, or a mark such as a vowel sign of Hindi."""
    return character.isalnum() or (character != "" and unicodedata.category(character).startswith("M"))


@cache
def spaced(language: str) -> bool:
    """Whether a language separates words by spaces."""
    return parse_language(language).spaced
