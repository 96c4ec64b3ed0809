"""`redraft.types.Rows` over a torch matrix of logits, computed on the device where it lies."""

from __future__ import annotations

import torch
from torch import Tensor


class TorchRows:
    """Rows of one request.

    Only answers leave the device: one id a row for `argmax`, single numbers for the others.  Sums are taken in 64 bits.

    Args:
        logits: (rows, vocabulary) matrix.
        root: index of the row of node -1; the row of node ``i`` is ``root + 1 + i``.
    """

    def __init__(self, logits: Tensor, root: int) -> None:
        self._logits, self._offset = logits, root + 1
        self._best: list[int] = []
        self._normaliser: dict[int, float] = {}

    def _log_normaliser(self, row: int) -> float:
        if row not in self._normaliser:
            self._normaliser[row] = float(torch.logsumexp(self._logits[row].double(), dim=0))
        return self._normaliser[row]

    def argmax(self, node: int) -> int:
        """The most probable token; the lowest id among equals."""
        if not self._best:  # of all rows at once, since every answer stops a GPU; torch takes the first of equals
            self._best = self._logits.argmax(dim=-1).tolist()
        return self._best[self._offset + node]

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """The ``k`` best tokens with log-probabilities, best first, lower ids first among equals."""
        logits = self._logits[self._offset + node]
        k = min(k, len(logits))
        # Which of several equals `topk` takes is not said, so all that reach its last value are sorted once more.
        candidates = torch.nonzero(logits >= logits.topk(k).values[-1]).flatten()
        order = torch.sort(logits[candidates], descending=True, stable=True)
        normaliser = self._log_normaliser(self._offset + node)
        logs = [value - normaliser for value in order.values[:k].tolist()]
        return list(zip(candidates[order.indices[:k]].tolist(), logs, strict=True))

    def logprob(self, node: int, token: int) -> float:
        """Natural log of the probability of ``token``."""
        row = self._offset + node
        return float(self._logits[row, token]) - self._log_normaliser(row)

    def entropy(self, node: int) -> float:
        """Entropy in nats."""
        row = self._offset + node
        logs = self._logits[row].double() - self._log_normaliser(row)
        logs = logs[torch.isfinite(logs)]  # what is impossible adds nothing
        return -float((logs.exp() * logs).sum())
