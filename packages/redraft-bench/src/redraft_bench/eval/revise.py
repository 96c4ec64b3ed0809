"""Simulate a recogniser that revises: the unfinished end of a talk is one utterance that is rewritten and may shrink.

Streaming recognisers that decode a sliding window send the whole window each time.  Its newest words change or vanish,
and its oldest sentence is dropped once it is complete.  So most updates do not start with the previous text, unlike
those of a recogniser that only appends words or of a stream revealed by words.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from redraft.captions.events import Update, whole
from redraft.captions.languages import parse_language
from redraft.decoding.method import Option
from redraft.errors import InputError
from redraft_bench.eval.stream import Segment, Stream

RATE = Option("revisions", 0.55, 0, 0.9, "of the updates, those that do not begin with the text before them")
#: Infix of the stream's name, before the rate.
REVISED = ".revised-"
#: Number of sentences at the start of an utterance.
SENTENCES = 3
#: Maximum number of newest words that a revision changes.
NEWEST = 24
#: Words recognised after a sentence before it is dropped from the utterance.
BEYOND = 5


def revise(stream: Stream, rate: float, seed: int = 0, *, lag: int = 3) -> Stream:
    """Return a stream in which the recogniser revises the share ``rate`` of its updates.

    Utterances consist of `SENTENCES` sentences.  An update appends ``lag`` words or revises the newest words: some are
    misheard, others missing.  A revision may also drop the first sentence once the next one has begun; references are
    those of the sentences that remain at the end.  The final update is correct.  The result has no times.

    Args:
        stream: sentences; only their final texts are used.
        rate: share of updates that do not start with the previous text, within `RATE`.
        seed: random seed, at least 0.
        lag: words appended by an update, at least 1.

    Raises:
        OptionError: an argument is out of range.
        InputError: the stream has no words.
    """
    rate = float(RATE.check(rate))
    whole("seed", seed, 0)
    whole("lag", lag, 1)
    groups = (stream.segments[first : first + SENTENCES] for first in range(0, len(stream.segments), SENTENCES))
    segments = [
        _Tail(group, random.Random(f"{seed} {group[0].utterance}"), rate, lag).segment()
        for group in groups
        if any(each.source.split() for each in group)
    ]
    if not segments:
        raise InputError(f"{stream.name} has no words to revise")
    return Stream(f"{stream.name}{REVISED}{rate:g}", tuple(segments), seed)


class _Tail:
    """The unfinished end of a talk during recognition."""

    def __init__(self, sentences: Sequence[Segment], rng: random.Random, rate: float, lag: int) -> None:
        self._rng, self._rate, self._lag = rng, rate, lag
        self._sentences = [(each.source.split(), each) for each in sentences if each.source.split()]
        self._words = [word for words, _ in self._sentences for word in words]
        self._recognised: list[str] = []
        self._reached = 0

    def segment(self) -> Segment:
        """Return the utterance with all its updates."""
        name, texts = self._sentences[0][1].utterance, [*self._texts()]
        final = " ".join(self._words)
        texts = [text for text in texts if text] or [final]
        texts = texts if texts[-1] == final else [*texts, final]
        updates = (Update(name, seq, text, seq == len(texts) - 1) for seq, text in enumerate(texts))
        return Segment(tuple(updates), self._references())

    def _texts(self) -> list[str]:
        texts: list[str] = []
        while self._reached < len(self._words):
            if self._reached and self._rng.random() < self._rate:
                self._revise(texts[-1])
            else:
                self._hear(self._lag)
            texts.append(" ".join(filter(None, self._recognised)))
        return texts

    def _hear(self, words: int) -> None:
        self._recognised += self._words[self._reached : self._reached + words]
        self._reached = len(self._recognised)

    def _revise(self, before: str) -> None:
        """Recognise the newest words again, fewer or more of them, or drop the first sentence."""
        first = self._sentences[0][0]
        if len(self._sentences) > 1 and self._reached >= len(first) + BEYOND and self._rng.random() < 0.5:
            del self._sentences[0], self._words[: len(first)], self._recognised[: len(first)]
            self._reached -= len(first)
            return
        back = self._rng.randint(1, min(NEWEST, self._reached))
        again = max(1, back + self._rng.randint(-2, self._lag))
        start = self._reached - back
        self._recognised = self._recognised[:start]
        self._reached = start
        self._hear(again)
        for place in range(start, self._reached):
            if self._rng.random() < 0.3:
                self._recognised[place] = _misheard(self._recognised[place], self._rng)
        if " ".join(filter(None, self._recognised)).startswith(before):
            del self._recognised[start:]  # nothing changed, so drop the newest words
            self._reached = start

    def _references(self) -> dict[str, str]:
        first, *others = [dict(segment.references) for _, segment in self._sentences]
        shared = [code for code in first if all(code in each for each in others)]
        return {
            code: (" " if parse_language(code).spaced else "").join(each[code] for each in (first, *others))
            for code in shared
        }


def _misheard(word: str, rng: random.Random) -> str:
    """Return a misheard word: truncated, in the other case, or empty."""
    cut = word[: rng.randrange(1, max(2, len(word)))]
    return rng.choice((cut, word.swapcase(), ""))
