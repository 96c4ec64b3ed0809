"""`redraft.decoding.types.Rows` for a NumPy matrix of logits.

A row may have 150,000 logits or more, so each is traversed as few times as possible: sums use the logits' own precision
(pairwise summation), and a few best tokens are found one by one.  In 32 bits, log-probabilities and entropies have
errors of about 1e-6.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.backends.numpy_distribution import NumpyDistribution

Matrix = NDArray[np.float32]

#: Maximum number of best tokens to find one by one; partially sorting a row takes as long as 30 such searches.
_FEW = 16
#: If the largest logit is within these bounds, exponentials and their sum fit 32 bits without shifting.
_LOWEST, _HIGHEST = -20.0, 70.0


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
        """Return the ``k`` most probable tokens, best first, lower ids first among equals."""

    def argmax(self, node: int) -> int:
        """Return the most probable token, the lowest id among equals."""
        if node < -1:  # a row of the prompt: rarely requested
            return int(self.row(node).argmax())
        if not self._best:  # all other rows at once: most are requested, and each result synchronises a GPU
            self._best = self._logits[self._root :].argmax(1).tolist()
        return self._best[self._place(node) - self._root]

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """Return the ``k`` most probable tokens with log-probabilities, best first, lower ids first among equals."""
        best, normaliser = self.best(node, k), self._log_normaliser(node)
        return [(token, value - normaliser) for token, value in zip(best, self.row(node)[best].tolist(), strict=True)]

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
        """Return the ``k`` most probable tokens, best first, lower ids first among equals."""
        row = self.row(node)
        k = min(k, len(row))
        found = self._best_one_by_one(node, row, k) if k <= _FEW else []
        if len(found) == k:
            return found
        threshold = np.partition(row, -k)[-k]
        candidates = np.flatnonzero(row >= threshold)
        best: list[int] = candidates[np.argsort(-row[candidates], kind="stable")][:k].tolist()
        return best

    def _best_one_by_one(self, node: int, row: NDArray[Any], k: int) -> list[int]:
        """As `best`, but without impossible tokens."""
        found = [self.argmax(node)][:k]
        if k < 2:
            return found
        row = row if row.flags.writeable else row.copy()
        values = [row[found[0]]]
        try:
            while len(found) < k:
                row[found[-1]] = -np.inf
                token = int(row.argmax())
                if row[token] == -np.inf:
                    break
                found.append(token)
                values.append(row[token])
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
