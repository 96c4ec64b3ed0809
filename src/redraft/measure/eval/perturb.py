"""Mistakes of a recogniser, put into a stream: words misheard at first and corrected later, so that it is revised.

The rates are not fitted to any recogniser: outputs with revisions, such as could be measured, are not among the data.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from redraft.captions.formats.parse import whole
from redraft.captions.words import WORD
from redraft.decoding.method import Option
from redraft.measure.eval.stream import Segment, Stream

#: Shares, each from 0 to 1.
RATES = {
    option.name: option
    for option in (
        Option("late", 0.3, 0, 1, "of the mistakes that an update could correct, those that it does not"),
        Option("drop", 0.05, 0, 1, "of the words, those that are not heard at first"),
        Option("split", 0.05, 0, 1, "of the words, those that are cut in two or run into the word before"),
        Option("casing", 0.1, 0, 1, "of the words, those that are in lower case at first"),
        Option("cut", 0.2, 0, 1, "of the updates, those whose last word is heard in part only"),
    )
}


@dataclass(frozen=True, slots=True)
class _Word:
    """A word with the space before it, and what is heard of both."""

    space: str
    word: str
    heard: str

    @property
    def said(self) -> str:
        return self.space + self.word


def perturb(
    stream: Stream,
    seed: int,
    *,
    late: float = RATES["late"].default,
    drop: float = RATES["drop"].default,
    split: float = RATES["split"].default,
    casing: float = RATES["casing"].default,
    cut: float = RATES["cut"].default,
) -> Stream:
    """The stream as a recogniser would have heard it: its newest words may be wrong, and are corrected later.

    A word may be misheard in the update that has it first.  Each update after that corrects it, but for the share
    ``late`` of all cases; the final update is right.  Names, times and the number of updates stay as they are.  The
    mistakes of an utterance depend on its name and updates and on the seed, not on what comes before it.

    Args:
        stream: one without mistakes, such as `redraft.measure.eval.sets.lag_stream` makes.
        seed: of what is random, 0 or more.
        late: share of the mistakes left to a later update, each time.
        drop: share of the words that are not heard at first.
        split: share of the words that are cut in two or, as often, run into the word before.
        casing: share of the words that are in lower case at first.
        cut: share of the updates whose last word, if it is new, is heard in part only.

    Raises:
        OptionError: a share is not a number from 0 to 1, or ``seed`` not a whole number of 0 or more.
    """
    given = {"late": late, "drop": drop, "split": split, "casing": casing, "cut": cut}
    rates = {name: float(RATES[name].check(value)) for name, value in given.items()}
    whole("seed", seed, 0)
    segments = (_misheard(each, random.Random(f"{seed} {each.utterance}"), rates) for each in stream.segments)
    return Stream(f"{stream.name}.perturbed", tuple(segments), seed)


def _misheard(segment: Segment, rng: random.Random, rates: Mapping[str, float]) -> Segment:
    words: list[_Word] = []
    updates = []
    for update in segment.updates[:-1]:
        words = _hear(update.text, words, rng, rates)
        updates.append(replace(update, text="".join(word.heard for word in words)))
    return replace(segment, updates=(*updates, segment.updates[-1]))


def _hear(text: str, before: list[_Word], rng: random.Random, rates: Mapping[str, float]) -> list[_Word]:
    """The words of a text as they are heard, after those of the update before."""
    words: list[_Word] = []
    end = 0
    for found in WORD.finditer(text):
        word = _Word(text[end : found.start()], found[0], text[end : found.end()])
        known = before[len(words)] if len(words) < len(before) else None
        if known is None or known.said != word.said:
            word = replace(word, heard=_mistaken(word, found.end() == len(text), rng, rates))
        elif known.heard != known.said and rng.random() < rates["late"]:
            word = known
        words.append(word)
        end = found.end()
    return words


def _mistaken(word: _Word, last: bool, rng: random.Random, rates: Mapping[str, float]) -> str:
    """What is heard of a new word; of several mistakes the first one counts, but for the case."""
    heard = word.said
    cut = rng.randrange(1, max(2, len(word.word)))  # a place within the word, behind it if it is one character
    if rng.random() < rates["drop"]:
        heard = ""
    elif rng.random() < rates["split"]:
        in_two = len(word.word) > 1 and rng.random() < 0.5
        heard = f"{word.space}{word.word[:cut]} {word.word[cut:]}" if in_two else word.word
    elif last and rng.random() < rates["cut"]:
        heard = word.space + word.word[:cut]
    return heard.lower() if rng.random() < rates["casing"] else heard
