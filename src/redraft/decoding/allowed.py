"""Rows without impossible tokens, for every drafter, rule and engine alike."""

from __future__ import annotations

import math
from collections.abc import Mapping

from redraft.decoding.selection import Selection
from redraft.decoding.types import ROOT, Draft, Rows


class AllowedRows:
    """Rows in which some tokens are impossible; implements `redraft.decoding.types.Rows`.

    The probabilities of the other tokens stay as they are, and are not scaled to add up to 1.

    Args:
        rows: the model's rows.
        draft: the draft that was scored.
        output: output ids before the draft.
        selection: which tokens are possible.
        barred: position in the output -> id of a token that is impossible there.
    """

    def __init__(
        self, rows: Rows, draft: Draft, output: tuple[int, ...], selection: Selection, barred: Mapping[int, int]
    ) -> None:
        self._rows, self._draft, self._output = rows, draft, output
        self._selection, self._barred = selection, barred
        self._paths: dict[int, tuple[int, ...]] = {ROOT: output}

    def _path(self, node: int) -> tuple[int, ...]:
        """Return the output up to ``node``; it is empty for nodes of the prompt."""
        if node not in self._paths:
            if node < ROOT:
                self._paths[node] = self._output[: max(0, len(self._output) + node - ROOT)]
            else:
                self._paths[node] = (*self._path(self._draft.parents[node]), self._draft.tokens[node])
        return self._paths[node]

    def _allows(self, node: int, token: int) -> bool:
        path = self._path(node)
        return self._selection.allows(path, token) and (node < ROOT or token != self._barred.get(len(path)))

    def argmax(self, node: int) -> int:
        """Return the most probable allowed token after ``node``."""
        token = self._rows.argmax(node)
        return token if self._allows(node, token) else self.best(node, 1)[0]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable allowed tokens after ``node`` (or all)."""
        only = self._selection.only(self._path(node))
        if only is not None:
            few = [token for token in only if self._allows(node, token)] or [*only]
            return sorted(few, key=lambda token: (-self._rows.logprob(node, token), token))[:k]
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
        """Return the entropy of the model's distribution after ``node`` in nats, impossible tokens included."""
        return self._rows.entropy(node)
