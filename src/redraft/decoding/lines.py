"""Where an output of one line ends: at its first line break, whatever the model writes after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

#: ``end(output)`` returns how many ids of an output belong to its line; None if the line has not ended.
LineEnd: TypeAlias = Callable[[Sequence[int]], int | None]


@dataclass(frozen=True, slots=True)
class LineBreaks:
    r"""The tokens of a vocabulary that hold a line break, by what precedes it in them.

    Attributes:
        before: ids of tokens without text before the break; a line ends before them.
        within: ids of tokens with text before the break, such as ``.\n\n``; a line ends with them.
        blank: ids of tokens without text: control tokens and white space, breaks included.
    """

    before: frozenset[int] = frozenset()
    within: frozenset[int] = frozenset()
    blank: frozenset[int] = frozenset()

    @classmethod
    def of(cls, tokens: Iterable[bytes]) -> Self:
        """Sort a vocabulary: the bytes of every token, in the order of their ids."""
        before: set[int] = set()
        within: set[int] = set()
        blank: set[int] = set()
        for token, data in enumerate(tokens):
            if _is_blank(data):
                blank.add(token)
            if b"\n" in data:
                (before if _is_blank(first_line(data)) else within).add(token)
        return cls(frozenset(before), frozenset(within), frozenset(blank))

    @property
    def ends(self) -> frozenset[int]:
        """All tokens that may end a line, for drafters and rules that treat ends differently."""
        return self.before | self.within

    def end(self, output: Sequence[int]) -> int | None:
        """Return how many ids of an output belong to its first line with text (`LineEnd`)."""
        if self.before.isdisjoint(output) and self.within.isdisjoint(output):
            return None
        has_text = False
        for place, token in enumerate(output):
            if token in self.within:
                return place + 1
            if has_text and token in self.before:
                return place
            has_text = has_text or token not in self.blank
        return None


#: No token ends a line.
NO_BREAKS = LineBreaks()


def _is_blank(data: bytes) -> bool:
    """Whether bytes are only white space, of any script."""
    return not data.decode(errors="replace").strip()


def first_line(data: bytes) -> bytes:
    """Return the bytes before the first line break."""
    return data.partition(b"\n")[0]
