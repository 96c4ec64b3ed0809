"""`redraft.types.Rows` over a NumPy matrix of logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


class NumpyRows:
    """Rows of one request.

    Args:
        logits: (rows, vocabulary) matrix of this request alone, often a view of the engine's own buffer.
        root: index of the row of node -1; the row of node ``i`` is ``root + 1 + i``.
    """

    def __init__(self, logits: Matrix, root: int) -> None:
        self._logits, self._offset = logits, root + 1
        self._best: list[int] = []
        self._normaliser: dict[int, float] = {}

    def _row(self, node: int) -> NDArray[Any]:
        row: NDArray[Any] = self._logits[self._offset + node]
        return row

    def _log_normaliser(self, node: int) -> float:
        if node not in self._normaliser:
            row = self._row(node)
            top = row.max()
            self._normaliser[node] = float(top + np.log(np.exp(row - top).sum(dtype=np.float64)))
        return self._normaliser[node]

    def argmax(self, node: int) -> int:
        """The most probable token; the lowest id among equals."""
        if not self._best:  # of all rows at once: most are asked for, some of them several times
            self._best = self._logits.argmax(axis=1).tolist()
        return self._best[self._offset + node]

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """The ``k`` best tokens with log-probabilities, best first, lower ids first among equals."""
        if k == 1:  # what drafters ask a small model for, token by token
            best = self.argmax(node)
            return [(best, self.logprob(node, best))]
        row = self._row(node)
        k = min(k, len(row))
        threshold = np.partition(row, -k)[-k]
        candidates = np.flatnonzero(row >= threshold)
        order = candidates[np.argsort(-row[candidates], kind="stable")][:k]
        logs = row[order].astype(np.float64) - self._log_normaliser(node)
        return list(zip(order.tolist(), logs.tolist(), strict=True))

    def logprob(self, node: int, token: int) -> float:
        """Natural log of the probability of ``token``."""
        return float(self._row(node)[token]) - self._log_normaliser(node)

    def entropy(self, node: int) -> float:
        """Entropy in nats."""
        logs = self._row(node).astype(np.float64) - self._log_normaliser(node)
        logs = logs[np.isfinite(logs)]  # what is impossible adds nothing
        return float(-(np.exp(logs) * logs).sum())
