"""Rows without forbidden tokens: vocabulary selection, for every drafter, rule and engine alike."""

from __future__ import annotations

import math
from collections.abc import Mapping

from redraft.decoding.types import ROOT, Draft, Rows


class AllowedRows:
    """Rows in which some tokens are impossible; implements `redraft.decoding.types.Rows`.

    The probabilities of the other tokens stay as they are, and are not scaled to add up to 1.

    Args:
        rows: the model's rows.
        forbidden: ids of the impossible tokens.
        barred: node -> id of a token that is impossible there only.
    """

    def __init__(self, rows: Rows, forbidden: frozenset[int], barred: Mapping[int, int] = {}) -> None:
        self._rows, self._forbidden, self._barred = rows, forbidden, barred

    def _allows(self, node: int, token: int) -> bool:
        return token not in self._forbidden and token != self._barred.get(node)

    def argmax(self, node: int) -> int:
        """Return the most probable allowed token after ``node``."""
        token = self._rows.argmax(node)
        return token if self._allows(node, token) else self.best(node, 1)[0]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable allowed tokens after ``node`` (or all)."""
        asked, given = 2 * k + 6, -1
        while True:
            found = self._rows.best(node, asked)
            allowed = [token for token in found if self._allows(node, token)]
            if len(allowed) >= k or len(found) == given:  # no more tokens exist
                return allowed[:k]
            given, asked = len(found), 4 * asked

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """Return the tokens of `best` with their log-probabilities."""
        return [(token, self._rows.logprob(node, token)) for token in self.best(node, k)]

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token`` after ``node``; minus infinity if it is impossible."""
        return self._rows.logprob(node, token) if self._allows(node, token) else -math.inf

    def entropy(self, node: int) -> float:
        """Return the entropy of the model's distribution after ``node`` in nats, forbidden tokens included."""
        return self._rows.entropy(node)


def barred_nodes(draft: Draft, length: int, barred: Mapping[int, int]) -> dict[int, int]:
    """Convert positions in the output to nodes of a draft.

    Args:
        draft: the draft.
        length: length of the output before it.
        barred: position in the output -> id that must not stand there.

    Returns:
        Node -> id that must not follow it.
    """
    if not barred:
        return {}
    positions = {ROOT: length} | {node: length + depth for node, depth in enumerate(draft.depths)}
    return {node: barred[position] for node, position in positions.items() if position in barred}
