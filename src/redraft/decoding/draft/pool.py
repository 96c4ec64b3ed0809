"""The draft pool: where in the text so far the last tokens have stood before (AASD, Algorithm 1, lines 1-7 and 18-23).

Prompt and output are one chain of tokens, so an n-gram may begin in the one and end in the other.  Of an
encoder-decoder model the ids that the encoder reads stand in front of the chain: there is its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from redraft.decoding.types import Context, Provenance

#: A token with where it was taken from.
Step: TypeAlias = tuple[int, Provenance]


class Pool:
    """The text so far, searched for its last tokens.

    A text is short and every update begins another one, so an index of it would take longer to make than it saves.

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

    def read(self, context: Context) -> None:
        """Take in what is new since the last call."""
        if not self.text:
            self.text = [*context.encoder, *context.prompt]
            self.given = len(self.text)
        self.text += context.output[len(self.text) - self.given :]

    def find(self) -> Sequence[int]:
        """The places after the earlier occurrences of the longest key that the text ends with; first ones first."""
        text, place = self.text, 0
        places = []
        for _ in range(text.count(text[-1]) - 1 if text else 0):  # the last one ends the text
            place = text.index(text[-1], place) + 1
            places.append(place)
        for length in range(2, self._key_length + 1):
            longer = [place for place in places if place >= length and text[place - length] == text[-length]]
            if not longer:
                break
            places = longer
        return places

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
