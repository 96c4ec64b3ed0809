"""Vocabulary selection: which tokens an output may contain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache


@lru_cache(maxsize=64)  # once for every language, although each source has a selection
def _together(first: frozenset[int], second: frozenset[int]) -> frozenset[int]:
    return first | second


@dataclass(frozen=True, slots=True)
class Next:
    """Which tokens may follow an output.

    Attributes:
        only: ids of the possible tokens inside a word; None elsewhere, where the other attributes count.
        possible: ids that may follow in any case.
        foreign: ids that may follow only if they are among ``possible``.
    """

    only: frozenset[int] | None = None
    possible: frozenset[int] = frozenset()
    foreign: frozenset[int] = frozenset()

    def among(self, tokens: Iterable[int]) -> list[int]:
        """Return those of ``tokens`` that may follow, in their order."""
        only, possible, foreign = self.only, self.possible, self.foreign
        if only is not None:
            return [token for token in tokens if token in only]
        return [token for token in tokens if token in possible or token not in foreign]

    def without(self, tokens: frozenset[int]) -> Next:
        """Return the same without some tokens; those inside a word stay if no other one may follow."""
        if self.only is not None:
            return Next(self.only - tokens or self.only)
        return Next(None, self.possible - tokens, self.foreign | tokens) if tokens else self


@dataclass(frozen=True, slots=True)
class Selection:
    """Tokens that an output may contain only where they spell certain words.

    A foreign token must start or continue one of the words, and a started word must be finished. The letters of two
    words never join, so that their pieces do not become a third.

    Attributes:
        foreign: ids of tokens that may only spell words.
        begins: ids of tokens that begin with a letter, foreign or not.
        ends: ids of tokens that end with a letter.
        words: ids of each word.
        pieces: ids of all tokens of the words.
        special: ids of foreign tokens and of those that begin with a letter; all others may follow any token that is
            not a piece of a word.
    """

    foreign: frozenset[int] = frozenset()
    begins: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    words: frozenset[tuple[int, ...]] = frozenset()
    pieces: frozenset[int] = field(init=False, repr=False, compare=False)
    special: frozenset[int] = field(init=False, repr=False, compare=False)
    _outside: Next = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", frozenset().union(*self.words))
        object.__setattr__(self, "special", _together(self.foreign, self.begins))
        object.__setattr__(self, "_outside", Next(None, frozenset([word[0] for word in self.words]), self.foreign))

    def __bool__(self) -> bool:
        return bool(self.foreign)

    def after(self, path: tuple[int, ...]) -> Next:
        """Return which tokens may follow the output ``path``."""
        if not path or (path[-1] not in self.pieces and path[-1] not in self.ends):
            return self._outside
        started = self._started(path)
        # A single letter is a word too, so it needs no completion.
        open_words = [word for length, word in started if length > 1 or path[-1] in self.foreign]
        finished = any(length == len(word) for length, word in started)
        if open_words and not finished:
            return Next(frozenset(word[length] for length, word in started if word in open_words))
        continuing = frozenset(word[length] for length, word in started if length < len(word))
        first = self._outside.possible
        if path[-1] in self.ends:
            return Next(None, continuing | (first - self.begins), self.special)
        return Next(None, continuing | first, self.foreign)

    def is_forced(self, path: tuple[int, ...]) -> bool:
        """Whether only one token may follow the output ``path``: it is inside a word that has to be finished."""
        only = self.after(path).only
        return only is not None and len(only) == 1

    def _started(self, path: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Return the words that ``path`` may be writing, each with the number of its tokens at the end of ``path``."""
        return [
            (length, word)
            for word in self.words
            if path[-1] in word
            for length in range(1, min(len(word), len(path)) + 1)
            if path[-length:] == word[:length]
            # not a letter behind another one
            and not (word[0] in self.begins and self.ends.intersection(path[-1 - length : -length]))
        ]


#: Allows all tokens.
EVERYTHING = Selection()
