"""A language model as a table: small, random, exact in float64, and aware of what it is asked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.backend import Capability, CostCurve
from redraft.decoding.ends import NO_BREAKS, LineBreaks
from redraft.decoding.rules import walk
from redraft.decoding.segments import PromptSegment
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import ROOT, Draft, Rows, Rule, Score, Verdict, top_k

END = 0


class RandomModel:
    """Logits drawn from a hash of the last two ids, shifted a little by the prompt.

    The shift makes outputs for similar prompts share stretches, as successive updates do.  Implements the `Backend`
    protocol; ``requests`` keeps what was asked.
    """

    capabilities = frozenset({Capability.TREES, Capability.PROMPT_ROWS, Capability.BATCHES})
    context_length = 512
    end_tokens = frozenset({END})
    pad_token = 1
    metadata: Mapping[str, str] = {}

    def __init__(self, seed: int = 0, vocabulary: int = 12, shift: float = 0.5, end_bias: float = 0.0) -> None:
        self.seed, self.vocabulary, self.shift, self.end_bias = seed, vocabulary, shift, end_bias
        self.vocabulary_size = vocabulary
        self.requests: list[Score] = []
        self.batches: list[int] = []
        self._slots: set[int] = set()

    def open_slot(self) -> int:
        slot = len(self._slots)
        self._slots.add(slot)
        return slot

    def close_slot(self, slot: int) -> None:
        self._slots.remove(slot)

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        local = self._draw(*ids[-2:]) * 2.0 + self._draw(99, *ids[: max(1, len(ids) // 3)]) * self.shift
        local[END] += self.end_bias
        return local

    def _draw(self, *ids: int) -> np.ndarray:
        return _drawn(self.vocabulary, (self.seed, *ids))

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        self.batches.append(len(requests))
        return [self._answer(score) for _slot, score in requests]

    def _answer(self, score: Score) -> Rows:
        self.requests.append(score)
        prefix, draft = list(score.prefix), score.draft
        paths: dict[int, list[int]] = {ROOT: prefix}
        rows = [self.logits(prefix[: len(prefix) - back]) for back in reversed(range(score.prompt_rows))]
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            paths[node] = [*paths[parent], token]
            rows.append(self.logits(paths[node]))
        return NumpyRows(np.array(rows), score.prompt_rows - 1)

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        return [1] * start + [1 + byte % (self.vocabulary - 1) for byte in text.encode()]

    def encode(self, segments: Sequence[PromptSegment]) -> list[int]:
        ids = self.tokenize("", start=True)
        for segment in segments:
            ids += self.tokenize(segment.text) if segment.token is None else [segment.token]
        return ids

    def token_bytes(self, token: int) -> bytes:
        return b"" if token == END else f" w{token}".encode()

    def settle(self, slot: int) -> None:
        pass

    def curve(self) -> CostCurve | None:
        return None

    def close(self) -> None:
        self._slots.clear()


@lru_cache(maxsize=1 << 15)
class Everything(Rule):
    """Accepts the whole draft; of a tree, the path of first children."""

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        return walk(draft, rows, lambda _node, children: children[0])


def _drawn(size: int, ids: tuple[int, ...]) -> np.ndarray:
    digest = hashlib.blake2b(repr(ids).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big")).normal(size=size)


def distribution(rows: Rows, node: int) -> list[float]:
    """(vocabulary,) probabilities after a node."""
    return [math.exp(log) for _token, log in sorted(top_k(rows, node, 1 << 20))]


def greedy(
    model: RandomModel,
    prompt: Sequence[int],
    limit: int,
    selection: Selection = EVERYTHING,
    breaks: LineBreaks = NO_BREAKS,
) -> list[int]:
    """Greedy decoding written without the engine, to hold it against."""
    ids = list(prompt)
    while len(ids) - len(prompt) < limit:
        logits = model.logits(ids)
        possible = selection.after(tuple(ids[len(prompt) :])).among(range(len(logits)))
        token = max(possible, key=lambda token: float(logits[token]))
        has_text = any(each not in breaks.blank for each in ids[len(prompt) :])
        if token in model.end_tokens or (has_text and token in breaks.before):
            break
        ids.append(token)
        if token in breaks.within:
            break
    return ids[len(prompt) :]
