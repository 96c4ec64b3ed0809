"""Simulate recognition errors: words are misheard at first and corrected in later updates.

The error rates are not fitted to a recogniser, since the data include no recogniser output with revisions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from redraft.captions.words import WORD
from redraft_bench.eval.stream import Segment, Stream

#: Error rates: the share of errors that each later update leaves uncorrected; the shares of words that are missing at
#: first, split in two or (equally often) joined to the previous word, or in lower case at first; and the share of
#: updates whose last word, if it is new, is incomplete.
RATES = {"late": 0.3, "drop": 0.05, "split": 0.05, "casing": 0.1, "cut": 0.2}


@dataclass(frozen=True, slots=True)
class _Word:
    """A word with the space before it, and what is recognised of both."""

    space: str
    word: str
    recognised: str

    @property
    def spoken(self) -> str:
        return self.space + self.word


def perturb(stream: Stream, seed: int, rates: Mapping[str, float] = RATES) -> Stream:
    """Return the stream with recognition errors: the newest words may be wrong and are corrected later.

    A word may be misheard in the first update that contains it; the final update is correct.  Names, times and the
    number of updates do not change.  The errors of an utterance depend on its name, its updates and the seed, but not
    on earlier utterances.
    """
    segments = (_misheard(each, random.Random(f"{seed} {each.utterance}"), rates) for each in stream.segments)
    return Stream(f"{stream.name}.perturbed", tuple(segments), seed)


def _misheard(segment: Segment, rng: random.Random, rates: Mapping[str, float]) -> Segment:
    words: list[_Word] = []
    updates = []
    for update in segment.updates[:-1]:
        words = _hear(update.text, words, rng, rates)
        updates.append(replace(update, text="".join(word.recognised for word in words)))
    return replace(segment, updates=(*updates, segment.updates[-1]))


def _hear(text: str, before: list[_Word], rng: random.Random, rates: Mapping[str, float]) -> list[_Word]:
    """Return the recognised words of a text, given those of the previous update."""
    words: list[_Word] = []
    end = 0
    for found in WORD.finditer(text):
        word = _Word(text[end : found.start()], found[0], text[end : found.end()])
        known = before[len(words)] if len(words) < len(before) else None
        if known is None or known.spoken != word.spoken:
            word = replace(word, recognised=_mistaken(word, found.end() == len(text), rng, rates))
        elif known.recognised != known.spoken and rng.random() < rates["late"]:
            word = known
        words.append(word)
        end = found.end()
    return words


def _mistaken(word: _Word, last: bool, rng: random.Random, rates: Mapping[str, float]) -> str:
    """Return a new word with errors; only the first error applies, except for casing."""
    recognised = word.spoken
    cut = rng.randrange(1, max(2, len(word.word)))  # a position inside the word, or after a single character
    if rng.random() < rates["drop"]:
        recognised = ""
    elif rng.random() < rates["split"]:
        in_two = len(word.word) > 1 and rng.random() < 0.5
        recognised = f"{word.space}{word.word[:cut]} {word.word[cut:]}" if in_two else word.word
    elif last and rng.random() < rates["cut"]:
        recognised = word.space + word.word[:cut]
    return recognised.lower() if rng.random() < rates["casing"] else recognised
