"""The draft pool: where in the text so far the last tokens have stood before (AASD, Algorithm 1, lines 1-7 and 18-23).

Prompt and output are one chain of tokens, so an n-gram may begin in the one and end in the other.  Of an
encoder-decoder model the ids that the encoder reads stand in front of the chain: there is its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from redraft.types import Context, Provenance

#: A token with where it was taken from.
Step: TypeAlias = tuple[int, Provenance]


class Pool:
    """An index of the text so far: key of 1 to ``key_length`` tokens -> the places that follow it, in their order.

    A key is entered when the token after it is known.  So the tokens that end the text are not found at that very
    place, and every place that is found has a token.

    Args:
        key_length: the longest key, at least 1.
        end_tokens: ids that end an output; no n-gram contains one.

    Attributes:
        text: the ids read so far.
        given: how many of them, counted from the beginning, the model was given; the others it has generated.
    """

    def __init__(self, key_length: int, end_tokens: frozenset[int] = frozenset()) -> None:
        self.text: list[int] = []
        self.given = 0
        self._key_length, self._end_tokens = key_length, end_tokens
        self._places: dict[tuple[int, ...], list[int]] = {}

    def read(self, context: Context) -> None:
        """Take in what is new since the last call."""
        if not self.text:
            self.given = len(context.encoder) + len(context.prompt)
            self._append(context.encoder + context.prompt)
        self._append(context.output[len(self.text) - self.given :])

    def _append(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            place = len(self.text)
            for length in range(1, min(self._key_length, place) + 1):
                self._places.setdefault(tuple(self.text[place - length :]), []).append(place)
            self.text.append(token)

    def find(self) -> Sequence[int]:
        """The places after the earlier occurrences of the longest key that the text ends with; first ones first."""
        for length in range(min(self._key_length, len(self.text)), 0, -1):
            places = self._places.get(tuple(self.text[-length:]))
            if places:
                return places
        return ()

    def ngram(self, place: int, length: int) -> list[Step]:
        """At most ``length`` tokens from ``place`` on, up to the first end token.

        An end token in a draft would be of no use: where the target wants it, the same pass gives it anyway.
        """
        steps: list[Step] = []
        for at in range(place, min(place + length, len(self.text))):
            if self.text[at] in self._end_tokens:
                break
            steps.append((self.text[at], Provenance.PROMPT if at < self.given else Provenance.GENERATED))
        return steps
