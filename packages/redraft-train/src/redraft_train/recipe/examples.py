"""Convert sentence pairs to padded batches: joining, prefix pairs, length buckets.

An example is ``<s> source <2xx> target </s>``; the loss covers only the target and its end.  The tag follows the
source, so that a growing source keeps the cache of its prefix.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.utils.data import IterableDataset, get_worker_info

from redraft.captions.sentence import DEFAULT_MARK, as_sentence
from redraft_bench.eval.losses import has_number
from redraft_bench.eval.sets import TURN
from redraft_train.recipe.corpus import LANGUAGE_SHARES, Pair
from redraft_train.recipe.renumber import renumbered
from redraft_train.recipe.tokenizer import BOS, EOS, PAD, target_tag
from redraft_train.recipe.unfinished import unfinished
from redraft_train.spoken import as_recognised

#: Ids of an example, and the position of its first target.
Example: TypeAlias = tuple[list[int], int]

#: Sequences are padded to one of these lengths, since each new shape costs a compilation.  All divide `BATCH`, so that
#: every batch has the same number of ids.
LENGTHS = (16, 24, 32, 40, 48, 64, 80, 96, 128, 192)
BATCH = 7680
MAX_LENGTH = LENGTHS[-1]
#: Number of examples of one language drawn and tokenized at a time.
DRAWN = 48
SPACED = {"de"}

#: Kinds of text that people say, as a whole; those that are made from patterns are among them.
SAID, MADE = {"everyday", "talks"}, "constructions"
#: Number of words of what people say at a time, and shares of short turns, of `MADE` and of texts with a number in it.
SAID_WORDS, TURNS, PATTERNS, NUMBERED = 30, 0.2, 0.3, 0.35
#: Share of numbers that are exchanged, and of utterances that are followed by another one.
EXCHANGED, FOLLOWED = 0.5, 0.25


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: ``ids`` (rows, length) int64, padded on the right.

    ``rows`` and ``columns`` index the targets' predecessors.  An ``anchored`` batch teaches nothing new: the model
    learns what it predicted before (`recipe.loss.divergence_slope`).
    """

    ids: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    anchored: bool = False

    @property
    def targets(self) -> NDArray[np.int64]:
        """The (n,) target ids, which follow the indexed positions."""
        return self.ids[self.rows, self.columns + 1]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Composition of the examples, as shares in [0, 1].

    Attributes:
        prefix: prefix pairs.
        spoken: sources in the style of a recogniser.
        joined: examples of several pairs.
        given: ready-made examples.
        unfinished: prefix pairs, among those, whose source ends as a recogniser's unfinished text does.
        said: whole utterances of people.  If there are any, all whole texts are written as `redraft.captions.sentence`
            writes final ones: a mark at the end tells a whole from the beginning of one.
    """

    prefix: float
    spoken: float = 0.0
    joined: float = 0.35
    given: float = 0.0
    unfinished: float = 0.0
    said: float = 0.0


def cut_in_proportion(
    source: str, target: str, language: str, generator: random.Random, others: Sequence[str] = ()
) -> tuple[str, str]:
    """Make a prefix pair (Arivazhagan et al. 2020, "Re-translation versus streaming").

    It has a random number of source words, and the same proportion of the target in words (German) or characters
    (Chinese, Japanese).  With ``others``, the source ends as a recogniser's unfinished text does (`recipe.unfinished`),
    with these as wrong words; the target is then that of the right words.
    """
    words = source.split(" ")
    if len(words) < 2:
        return source, target
    kept = generator.randrange(1, len(words))
    beginning = words[:kept]
    if others:
        beginning, kept = unfinished(beginning, others, generator)
    units = target.split(" ") if language in SPACED else list(target)
    kept_units = max(1, round(len(units) * kept / len(words)))
    separator = " " if language in SPACED else ""
    return " ".join(beginning), separator.join(units[:kept_units])


def join(pairs: Sequence[Pair]) -> tuple[str, str]:
    """Join several pairs of one language to a longer text."""
    separator = " " if pairs[0].language in SPACED else ""
    return " ".join(pair.source for pair in pairs), separator.join(pair.target for pair in pairs)


class ExampleStream(IterableDataset[Batch]):
    """An endless, seeded stream of batches of about ``tokens`` ids each, from ``pairs`` and ``given`` examples.

    Each worker of a DataLoader uses a different seed.
    """

    def __init__(
        self,
        pairs: Mapping[str, Sequence[Pair]],
        tokenizer: Tokenizer,
        mixture: Mixture,
        tokens: int,
        seed: int,
        given: Sequence[Example] = (),
    ) -> None:
        self._tokenizer, self._mixture, self._tokens = tokenizer, mixture, tokens
        self._seed, self._random = seed, random.Random(seed)
        self._pairs, self._given = pairs, given
        self._said = {language: said(of_language) for language, of_language in pairs.items()} if mixture.said else {}
        self._cumulative = {
            language: np.cumsum([pair.weight for pair in of_language]).tolist()
            for language, of_language in pairs.items()
        }
        self._bos, self._eos, self._pad = (tokenizer.token_to_id(token) for token in (BOS, EOS, PAD))
        self._seen = dict.fromkeys(pairs, 1.0)

    def __iter__(self) -> Iterator[Batch]:
        if worker := get_worker_info():
            self._random = random.Random(f"{self._seed} {worker.id}")
        waiting: dict[int, list[Example]] = {length: [] for length in LENGTHS}
        for example in self._endless():
            if len(example[0]) > MAX_LENGTH:
                continue
            length = padded(len(example[0]))
            waiting[length].append(example)
            if len(waiting[length]) == max(1, self._tokens // length):
                yield self._batch(waiting[length], length)
                waiting[length] = []

    def _endless(self) -> Iterator[Example]:
        while True:
            given = self._random.random() < self._mixture.given
            yield from self._random.choices(self._given, k=DRAWN) if given else self._examples(DRAWN)

    def _examples(self, number: int) -> Iterator[Example]:
        texts: list[str] = []
        languages: list[str] = []
        language = min(self._seen, key=lambda name: self._seen[name] / LANGUAGE_SHARES[name])
        for _ in range(number):
            source, target = self._draw(language)
            texts += source, target
            languages.append(language)
        encoded = self._tokenizer.encode_batch_fast(texts)
        for index, language in enumerate(languages):
            head = [self._bos, *encoded[2 * index].ids, self._tokenizer.token_to_id(target_tag(language))]
            ids = [*head, *encoded[2 * index + 1].ids, self._eos]
            self._seen[language] += len(ids)
            yield ids, len(head) - 1

    def _draw(self, language: str) -> tuple[str, str]:
        if self._mixture.said and self._random.random() < self._mixture.said:
            return self._utterance(language)
        joined = self._random.random() < self._mixture.joined
        number = self._random.randint(2, 4) if joined else 1
        drawn = self._random.choices(self._pairs[language], cum_weights=self._cumulative[language], k=number)
        if sum(len(pair.source) for pair in drawn) > 320:
            drawn = drawn[:1]
        source, target = join(drawn)
        if self._random.random() < self._mixture.prefix:
            noisy = self._mixture.unfinished and self._random.random() < self._mixture.unfinished
            others = self._random.choice(self._pairs[language]).source.split() if noisy else ()
            source, target = cut_in_proportion(source, target, language, self._random, others)
        if self._random.random() < self._mixture.spoken:
            source = as_recognised(source, self._random)
        return as_sentence(source, DEFAULT_MARK) if self._mixture.said else source, target

    def _utterance(self, language: str) -> tuple[str, str]:
        """Draw one or several whole utterances, half of them as recognisers without punctuation write them."""
        drawn = [self._said_pair(language)]
        while len(drawn) < 4 and self._random.random() < FOLLOWED:
            drawn.append(self._said_pair(language))
        recognised = self._random.random() < 0.5
        for place, pair in enumerate(drawn):
            source = as_recognised(pair.source, self._random) if recognised else pair.source
            drawn[place] = replace(pair, source=as_sentence(source, DEFAULT_MARK))
        return join(drawn)

    def _said_pair(self, language: str) -> Pair:
        kind = self._random.random()
        bounds = (TURNS, TURNS + PATTERNS, TURNS + PATTERNS + NUMBERED)
        place = sum(kind >= bound for bound in bounds)
        kinds = self._said[language]
        pair = self._random.choice(kinds[place] or kinds[-1] or self._pairs[language])
        exchanged = bounds[1] <= kind < bounds[2] and self._random.random() < EXCHANGED
        return renumbered(pair, self._random) if exchanged else pair

    def _batch(self, examples: list[Example], length: int) -> Batch:
        ids = np.full((len(examples), length), self._pad, np.int64)
        rows: list[NDArray[np.int64]] = []
        columns: list[NDArray[np.int64]] = []
        for row, (example, start) in enumerate(examples):
            ids[row, : len(example)] = example
            learnt = np.arange(start, len(example) - 1)
            columns.append(learnt)
            rows.append(np.full(len(learnt), row))
        return Batch(ids, np.concatenate(rows), np.concatenate(columns))


class Alternating(IterableDataset[Batch]):
    """Batches of ``learnt`` as a ``share`` of all, and anchored ones of another stream; each worker alternates."""

    def __init__(self, learnt: ExampleStream, anchored: ExampleStream, share: float) -> None:
        self._learnt, self._anchored, self._share = learnt, anchored, share

    def __iter__(self) -> Iterator[Batch]:
        first, second, due = iter(self._learnt), iter(self._anchored), 0.0
        while True:
            due += self._share
            yield next(first) if due >= 1 else replace(next(second), anchored=True)
            due %= 1


def said(pairs: Sequence[Pair]) -> tuple[list[Pair], ...]:
    """Return short turns, pairs made from patterns, utterances with a number, and all that are not too long."""
    made = [pair for pair in pairs if pair.kind == MADE]
    spoken = [pair for pair in pairs if pair.kind in SAID and len(pair.source.split()) <= SAID_WORDS]
    turns = [pair for pair in spoken if len(pair.source.split()) <= TURN]
    longer = [pair for pair in spoken if len(pair.source.split()) > TURN]
    return turns, made, [pair for pair in longer if has_number(pair.source)], longer


def padded(length: int) -> int:
    """Return the smallest of `LENGTHS` that is at least ``length``, or ``length`` if it is larger than all."""
    return next((step for step in LENGTHS if step >= length), length)
