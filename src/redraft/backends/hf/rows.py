"""`redraft.decoding.types.Rows` for a torch matrix of logits, computed on its device."""

from __future__ import annotations

import torch
from torch import Tensor


class TorchRows:
    """Rows of one request.

    Only results leave the device: ids for `argmax` and `best`, single numbers otherwise.  Logits are converted to
    32-bit floats, in which log-probabilities and entropies have errors of about 1e-6.

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
        """Return the most probable token, the lowest id among equals."""
        if node < -1:  # a row of the prompt: rarely requested
            return int(self._logits[self._offset + node].argmax())
        # all other rows at once, since each result synchronises the GPU; torch returns the first of equals
        if not self._best:
            self._best = self._logits[self._offset - 1 :].argmax(dim=-1).tolist()
        return self._best[node + 1]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable tokens, best first, lower ids first among equals."""
        if k == 1:
            return [self.argmax(node)]
        logits = self._logits[self._offset + node]
        k = min(k, len(logits))
        # `topk` does not specify which of several equals it returns, so all candidates are sorted again.
        candidates = torch.nonzero(logits >= logits.topk(k).values[-1]).flatten()
        order = torch.sort(logits[candidates], descending=True, stable=True)
        best: list[int] = candidates[order.indices[:k]].tolist()
        return best

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """Return the ``k`` most probable tokens with log-probabilities, best first, lower ids first among equals."""
        best = self.best(node, k)
        normaliser = self._log_normaliser(self._offset + node)
        values = self._logits[self._offset + node, best].tolist()
        return [(token, value - normaliser) for token, value in zip(best, values, strict=True)]

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token``."""
        row = self._offset + node
        return float(self._logits[row, token]) - self._log_normaliser(row)

    def entropy(self, node: int) -> float:
        """Return the entropy in nats."""
        row = self._offset + node
        logs = self._logits[row].float() - self._log_normaliser(row)
        return -float(torch.nansum(logs.exp() * logs))  # 0 times infinity, for impossible tokens, counts as 0
