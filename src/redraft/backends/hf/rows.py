"""`redraft.decoding.types.Rows` over a torch matrix of logits, computed on the device where it is."""

from __future__ import annotations

import torch
from torch import Tensor


class TorchRows:
    """Rows of one request.

    Only answers leave the device: ids for `argmax` and `best`, single numbers for the others.  Logits are taken as
    32-bit floats, in which a log-probability or an entropy is off by some 1e-6.

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
            self._normaliser[row] = float(torch.logsumexp(self._logits[row].float(), dim=0))
        return self._normaliser[row]

    def argmax(self, node: int) -> int:
        """The most probable token; the lowest id among equals."""
        if node < -1:  # a row of the prompt: few of them are asked for, and seldom twice
            return int(self._logits[self._offset + node].argmax())
        if not self._best:  # of all other rows at once, since every answer stops a GPU; torch takes the first of equals
            self._best = self._logits[self._offset - 1 :].argmax(dim=-1).tolist()
        return self._best[node + 1]

    def best(self, node: int, k: int) -> list[int]:
        """The ``k`` best tokens, best first, lower ids first among equals."""
        if k == 1:
            return [self.argmax(node)]
        logits = self._logits[self._offset + node]
        k = min(k, len(logits))
        # Which of several equals `topk` takes is not said, so all that reach its last value are sorted once more.
        candidates = torch.nonzero(logits >= logits.topk(k).values[-1]).flatten()
        order = torch.sort(logits[candidates], descending=True, stable=True)
        best: list[int] = candidates[order.indices[:k]].tolist()
        return best

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """The ``k`` best tokens with log-probabilities, best first, lower ids first among equals."""
        best = self.best(node, k)
        normaliser = self._log_normaliser(self._offset + node)
        values = self._logits[self._offset + node, best].tolist()
        return [(token, value - normaliser) for token, value in zip(best, values, strict=True)]

    def logprob(self, node: int, token: int) -> float:
        """Natural log of the probability of ``token``."""
        row = self._offset + node
        return float(self._logits[row, token]) - self._log_normaliser(row)

    def entropy(self, node: int) -> float:
        """Entropy in nats."""
        row = self._offset + node
        logs = self._logits[row].float() - self._log_normaliser(row)
        return -float(torch.nansum(logs.exp() * logs))  # what is impossible, 0 times infinity, adds nothing
