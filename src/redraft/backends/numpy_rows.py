"""`redraft.decoding.types.Rows` for a NumPy matrix of logits, and their distributions.

A row may have 150,000 logits or more, so each is traversed as few times as possible: sums use the logits' own precision
(pairwise summation), and a few best tokens are found one by one.  In 32 bits, log-probabilities and entropies have
errors of about 1e-6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.decoding.types import Distribution, WholeDistribution

Matrix = NDArray[np.float32]

#: Maximum number of best tokens to find one by one; partly sorting a row takes as long as some hundred such searches.
_FEW = 128
#: If the largest logit is within these bounds, exponentials and their sum fit 32 bits without shifting.
_LOWEST, _HIGHEST = -20.0, 70.0


class NumpyDistribution(WholeDistribution):
    """Probabilities of all tokens.

    Args:
        weights: (vocabulary,) weights, at least 0, of which one is above 0; they are scaled to a sum of 1.
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self._p = weights / weights.sum()

    @classmethod
    def of(cls, logits: NDArray[Any], temperature: float) -> NumpyDistribution:
        """Return softmax(logits / temperature), computed in 64 bits, for a temperature above 0."""
        with np.errstate(over="ignore"):  # a difference over a tiny temperature is minus infinity
            return cls(np.exp((logits - logits.max()).astype(np.float64) / temperature))

    def __getitem__(self, token: int) -> float:
        found = float(self._p[token])
        if not found:
            raise KeyError(token)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._p).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._p))

    def draw(self, uniform: float) -> int:
        """Return the first token up to which, by id, the probabilities add up to more than ``uniform``, below 1."""
        masses = self._p.cumsum()
        return int(np.searchsorted(masses, uniform * masses[-1], side="right"))

    def minus(self, other: Distribution) -> Distribution:
        """Return max(0, p - q), scaled; these probabilities themselves if nothing is left."""
        if isinstance(other, NumpyDistribution):
            rest = np.maximum(self._p - other._p, 0.0)
        else:
            rest = self._p.copy()
            for token, probability in other.items():
                rest[token] = max(0.0, rest[token] - probability)
        return NumpyDistribution(rest) if rest.any() else self

    def nucleus(self, mass: float) -> Distribution:
        """Return the smallest set of most probable tokens with a mass, lower ids first among equals, scaled."""
        order = np.argsort(-self._p, kind="stable")
        size = int(np.searchsorted(self._p[order].cumsum(), mass)) + 1
        kept = order[: min(size, len(self))]
        weights = self._p[kept] / self._p[kept].sum()
        return dict(zip(kept.tolist(), weights.tolist(), strict=True))

    def without(self, tokens: frozenset[int] | None, but: frozenset[int] = frozenset()) -> WholeDistribution:
        """Return the distribution without some tokens, or all, except those in ``but``; this one if nothing is left."""
        rest, kept = self._p.copy(), _places(but)
        rest[slice(None) if tokens is None else _places(tokens)] = 0.0
        rest[kept] = self._p[kept]
        return NumpyDistribution(rest) if rest.any() else self


@lru_cache(maxsize=64)  # those of a language's script are asked for in every row
def _places(tokens: frozenset[int]) -> NDArray[np.intp]:
    return np.fromiter(tokens, np.intp, len(tokens))


class MatrixRows(ABC):
    """Rows of one request in a matrix of NumPy or torch.

    Args:
        logits: (rows, vocabulary) matrix of this request, often a view of the engine's buffer.
        root: index of the row of node -1; the row of node ``i`` is ``root + 1 + i``.
        places: instead of that, node -> index of its row, for requests of which some rows were left out.
    """

    def __init__(self, logits: Any, root: int, places: Mapping[int, int] | None = None) -> None:
        self._logits, self._root, self._places = logits, 0 if places else root, places
        self._best: list[int] = []
        self._normaliser: dict[int, float] = {}

    def _place(self, node: int) -> int:
        return self._places[node] if self._places else self._root + 1 + node

    def row(self, node: int) -> Any:
        """Return the logits after ``node``, as a view."""
        return self._logits[self._place(node)]

    @abstractmethod
    def _log_normaliser(self, node: int) -> float: ...

    @abstractmethod
    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable tokens that are possible, best first, lower ids first among equals."""

    def argmax(self, node: int) -> int:
        """Return the most probable token, the lowest id among equals."""
        if node < -1:  # a row of the prompt: rarely requested
            return int(self.row(node).argmax())
        if not self._best:  # all other rows at once: most are requested, and each result synchronises a GPU
            self._best = self._logits[self._root :].argmax(1).tolist()
        return self._best[self._place(node) - self._root]

    def distribution(self, node: int, temperature: float) -> NumpyDistribution:
        """Return the distribution at a temperature above 0."""
        return NumpyDistribution.of(self.array(node), temperature)

    def array(self, node: int) -> NDArray[Any]:
        """Return the logits after ``node`` for NumPy."""
        return np.asarray(self.row(node))

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token``."""
        return float(self.row(node)[token]) - self._log_normaliser(node)


class NumpyRows(MatrixRows):
    """Rows of one request in 32 bits."""

    def _log_normaliser(self, node: int) -> float:
        if node not in self._normaliser:
            row = self.row(node)
            top = float(row[self.argmax(node)])
            base = 0.0 if _LOWEST < top < _HIGHEST else top
            weights = np.exp(row - row.dtype.type(base) if base else row)
            self._normaliser[node] = base + math.log(weights.sum())
        return self._normaliser[node]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable tokens that are possible, best first, lower ids first among equals."""
        row = self.row(node)
        if _FEW < k < len(row):
            candidates = np.flatnonzero((row >= np.partition(row, -k)[-k]) & (row > -np.inf))
            return [*candidates[np.argsort(-row[candidates], kind="stable")][:k].tolist()]
        row = row if row.flags.writeable else row.copy()
        found: list[int] = []
        values: list[float] = []
        try:
            while len(found) < k and row[token := int(row.argmax())] > -np.inf:
                found.append(token)
                values.append(row[token])
                row[token] = -np.inf
        finally:
            row[found] = values
        return found

    def entropy(self, node: int) -> float:
        """Return the entropy in nats."""
        row = self.row(node)
        logs = row - row[self.argmax(node)]
        weights = np.exp(logs)
        total = float(weights.sum())
        with np.errstate(invalid="ignore"):
            weighted = float(np.multiply(weights, logs, out=weights).sum())
        if math.isnan(weighted):  # minus infinity times 0, for impossible tokens, counts as 0
            weighted = float(np.nan_to_num(weights, copy=False).sum())
        return math.log(total) - weighted / total
