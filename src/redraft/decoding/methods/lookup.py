"""Prompt lookup: draft the n-gram that followed an earlier occurrence of the last tokens.

Saxena, Prompt lookup decoding (2023), and Yang et al., Inference with reference (LLMA, 2023, arXiv 2304.04487).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeAlias

from redraft.decoding.method import Method, Option, Setup
from redraft.decoding.rules import Exact
from redraft.decoding.types import EMPTY_DRAFT, Context, Draft, Drafter, Provenance

#: A token with its provenance.
Step: TypeAlias = tuple[int, str]


class Pool:
    """The text so far, with a search for its last tokens (AASD, Algorithm 1, lines 1-7 and 18-23).

    Prompt and output are one chain of tokens, so an n-gram may cross from one to the other.  For an encoder-decoder
    model the encoder's input, which contains the source, precedes the chain.

    There is no index: texts are short and every update starts a new one, so building it would take longer than it
    saves.

    Args:
        key_length: maximum length of a key, at least 1.
        end_tokens: ids that end an output; no n-gram contains one.

    Attributes:
        text: the ids read so far.
        given: how many of them are the model's input; the rest is generated.
    """

    def __init__(self, key_length: int, end_tokens: frozenset[int] = frozenset()) -> None:
        self.text: list[int] = []
        self.given = 0
        self._key_length, self._end_tokens = key_length, end_tokens

    def read(self, context: Context) -> None:
        """Read the ids added since the last call."""
        if not self.text:
            self.text = [*context.prompt.encoder, *context.prompt.ids]
            self.given = len(self.text)
        self.text += context.output[len(self.text) - self.given :]

    def find(self) -> Sequence[int]:
        """Return the positions after earlier occurrences of the longest key that ends the text, in order."""
        text, place = self.text, 0
        places = []
        for _ in range(text.count(text[-1]) - 1 if text else 0):  # the last occurrence is the end of the text itself
            place = text.index(text[-1], place) + 1
            places.append(place)
        for length in range(2, self._key_length + 1):
            longer = [place for place in places if place >= length and text[place - length] == text[-length]]
            if not longer:
                break
            places = longer
        return places

    def ngram(self, place: int, length: int) -> list[Step]:
        """Return at most ``length`` tokens from ``place``, up to the first end token.

        Drafting an end token would be useless: if the target wants it, the same pass yields it anyway.
        """
        tokens = takewhile(lambda token: token not in self._end_tokens, self.text[place : place + length])
        origins = Provenance.GENERATED, Provenance.PROMPT
        return [(token, origins[at < self.given]) for at, token in enumerate(tokens, place)]


class Lookup(Drafter):
    """Proposes one n-gram of prompt and output, from the first occurrence of the longest key found.

    Args:
        key_length: maximum length of a key, at least 1.
        ngram: maximum length of a draft, at least 1.
        end_tokens: ids that end an output; they are not drafted.
    """

    def __init__(self, key_length: int, ngram: int, end_tokens: frozenset[int] = frozenset()) -> None:
        self._pool, self._ngram = Pool(key_length, end_tokens), ngram

    def propose(self, context: Context) -> Draft:
        """Return the n-gram, or the empty draft if no key is found."""
        self._pool.read(context)
        places = self._pool.find()
        if not places:
            return EMPTY_DRAFT
        # The first occurrence has the most tokens after it, and text is usually copied from the prompt.
        steps = self._pool.ngram(places[0], min(self._ngram, context.room))
        return Draft.of(steps)


KEY = Option("key", 6, 1, 16, "maximum number of last tokens to look an n-gram up by", whole=True)
NGRAM = Option("ngram", 6, 1, 32, "maximum tokens of an n-gram", whole=True)
LOOKUP = (replace(KEY, default=3), replace(NGRAM, default=10))


def lookup(setup: Setup) -> Lookup:
    """Return the drafter that the options `LOOKUP` describe."""
    return Lookup(setup["key"], setup["ngram"], setup.ends)


METHODS = (
    Method(
        "pld",
        "prompt lookup: drafts what followed the last tokens at an earlier place in prompt or output",
        "Saxena 2023 (prompt lookup decoding); LLMA, Yang et al. 2023",
        "n-grams",
        "exact",
        lambda setup: (lookup(setup), Exact()),
        LOOKUP,
    ),
)
