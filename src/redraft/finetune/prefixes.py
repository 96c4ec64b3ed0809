"""Prefix pairs whose targets end where the source that has been heard ends to support them.

A target cut in proportion to its source asks a model to guess words that it has not heard, or to hold back words that
it could say.  Here the cut follows the alignment of the two sentences as the model itself knows it: the translation of
the whole sentence is scored after the beginning of the source, token by token, and ends before the first token that is
much less probable after the beginning than after the whole:

    log p(y_t | whole source, y_<t) - log p(y_t | its beginning, y_<t) > tolerance

The end token is left out of both distributions, since a model that knows prefix pairs ends where it has been taught
to.  So all targets of one sentence are beginnings of one translation, and a growing source takes nothing back.

The rule is the same for every model; a `Teacher` knows how one is prompted and scored.
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
from redraft.finetune.spoken import heard

Ids: TypeAlias = tuple[int, ...]
#: What a teacher is prompted with.
P = TypeVar("P")

#: In nats.  2 to 3 give German and Chinese targets about nine tenths as long as proportional ones.
TOLERANCE = 2.5


@dataclass(frozen=True, slots=True)
class Cuts:
    """How a translated source becomes prefix pairs.

    Attributes:
        beginnings: prefix pairs made of each source.
        spoken: share of sources written as a recogniser does, 0-1.
        tolerance: of the cuts, in nats, 0 or more.
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
        prompt: what the teacher was prompted with.
        output: ids of its translation, the end left out.
        end: the id that ended it.
    """

    source: str
    language: str
    prompt: P
    output: Ids
    end: int


class Teacher(Protocol[P]):
    """A model that is taught by itself."""

    def prompt(self, source: str, language: str) -> P:
        """What it is prompted with to translate ``source``."""

    def score(self, pairs: Sequence[tuple[P, Ids]]) -> list[NDArray[np.float32]]:
        """For every prompt and output, the (length,) log-probabilities of its tokens, end tokens ruled out."""

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids; U+FFFD stands for the bytes of a character that is not complete."""


def prefix_pairs(
    teacher: Teacher[P], translated: Sequence[TranslatedSource[P]], how: Cuts, generator: random.Random
) -> Iterator[tuple[P, Ids]]:
    """Prompts with what is learnt after them, ends included: the whole of every source, then beginnings of it.

    Outputs that go round in circles are left out: learnt, they come more often.
    """
    translated = [each for each in translated if not repeats(each.output)]
    wholes = teacher.score([(each.prompt, each.output) for each in translated])
    cut: list[tuple[int, P]] = []

    def prompt(words: Sequence[str], language: str) -> P:
        text = " ".join(words)
        return teacher.prompt(heard(text, generator) if generator.random() < how.spoken else text, language)

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
    """Whether three ids in a row come three times."""
    found = Counter(zip(output, output[1:], output[2:], strict=False))
    return max(found.values(), default=0) >= 3


def supported(whole: NDArray[np.float32], beginning: NDArray[np.float32], tolerance: float = TOLERANCE) -> int:
    """How many tokens of an output the beginning of its source supports.

    Args:
        whole, beginning: (length,) log-probabilities of the output's tokens after either source.
        tolerance: in nats, 0 or more.
    """
    missing = np.flatnonzero(whole - beginning > tolerance)
    return int(missing[0]) if len(missing) else len(whole)


def at_word_end(output: Sequence[int], length: int, spaced: bool, text: Callable[[Sequence[int]], str]) -> int:
    """The most tokens, at most ``length``, that end a word, or a character where words are not ``spaced``.

    Args:
        text: as `Teacher.text`.
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
    """Whether it goes on with a word: letters, digits, and marks such as the vowel signs of Hindi."""
    return character.isalnum() or (character != "" and unicodedata.category(character).startswith("M"))


@cache
def spaced(language: str) -> bool:
    """Whether a language has spaces between words."""
    return parse_language(language).spaced
