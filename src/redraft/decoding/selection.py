"""Vocabulary selection: which tokens an output may contain."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Selection:
    """Tokens that an output may contain only where they spell certain words.

    A foreign token must begin one of the words or continue it, and what contains one must be completed. A letter must
    not follow another one unless it continues a word, so that pieces of two words never become a third.

    Attributes:
        foreign: ids of tokens that may only spell words.
        begins: ids of tokens that begin with a letter, foreign or not.
        ends: ids of tokens that end with a letter.
        words: ids of each word.
    """

    foreign: frozenset[int] = frozenset()
    begins: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    words: frozenset[tuple[int, ...]] = frozenset()
    _pieces: frozenset[int] = field(init=False, repr=False, compare=False)
    _first: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pieces", frozenset(token for word in self.words for token in word))
        object.__setattr__(self, "_first", frozenset(word[0] for word in self.words))

    def __bool__(self) -> bool:
        return bool(self.foreign)

    def _rests(self, path: tuple[int, ...]) -> set[tuple[int, ...]]:
        """Return what is missing from each word that may stand at the end of ``path``."""
        if not path or path[-1] not in self._pieces:
            return set()
        rests = set()
        for word in self.words:
            for length in range(1, len(word) + 1):
                if path[-length:] == word[:length]:
                    rests.add(word[length:])
        return rests

    def _attached(self, path: tuple[int, ...], token: int) -> bool:
        """Whether there is nothing between the letters of ``path`` and of ``token``."""
        return token in self.begins and bool(path) and path[-1] in self.ends

    def only(self, path: tuple[int, ...]) -> frozenset[int] | None:
        """Return the ids that may follow if ``path`` ends inside a word; None elsewhere."""
        if not path or (path[-1] not in self.foreign and not self._attached(path[:-1], path[-1])):
            return None  # a single letter needs no completion
        rests = self._rests(path)
        return None if not rests or () in rests else frozenset(rest[0] for rest in rests)

    def allows(self, path: tuple[int, ...], token: int) -> bool:
        """Whether ``token`` may follow ``path``."""
        only = self.only(path)
        if only is not None:
            return token in only
        if not self._attached(path, token) and (token not in self.foreign or token in self._first):
            return True
        return any(rest[:1] == (token,) for rest in self._rests(path))


#: Allows all tokens.
EVERYTHING = Selection()
