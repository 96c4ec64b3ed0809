"""Rows and drafts without impossible tokens, for every rule and engine alike."""

from __future__ import annotations

import math
from collections.abc import Iterable

from redraft.decoding.selection import Next, Selection
from redraft.decoding.types import NOTHING_BARRED, ROOT, Barred, Draft, Rows, WholeDistribution

_ANYTHING = Next()


class AllowedRows:
    """Rows in which some tokens are impossible; implements `redraft.decoding.types.Rows`.

    The probabilities of the other tokens stay as they are, and are not scaled to add up to 1.

    Nearly all tokens are possible whatever precedes them, and rules ask for several in every row.  So each question is
    first put to the sets of the selection, and the words around a token are looked at only where these do not settle
    it.

    Args:
        draft: the draft that they are of.
        output: output ids before the draft.
        selection: which tokens the output may contain.
        barred: which tokens are impossible at some positions in the output.  The only token that may follow inside a
            word is never barred.

    Attributes:
        rows: the model's rows, once the draft has been scored.
    """

    rows: Rows

    def __init__(
        self, draft: Draft, output: tuple[int, ...], selection: Selection, barred: Barred = NOTHING_BARRED
    ) -> None:
        self._draft, self._output, self._selection, self._barred = draft, output, selection, barred
        #: By node: the last item is that of `ROOT`, which is -1.
        self._tokens = (*draft.tokens, *output[-1:]) if output else (*draft.tokens, None)
        self._next: dict[int, Next] = {}

    def possible_nodes(self) -> list[int]:
        """Return the nodes of the draft that can be accepted: without impossible tokens and what follows them."""
        parents, kept = self._draft.parents, {ROOT}
        for node, token in enumerate(self._draft.tokens):
            if parents[node] in kept and self._allows(parents[node], token):
                kept.add(node)
        kept.remove(ROOT)
        return sorted(kept)

    def argmax(self, node: int) -> int:
        """Return the most probable possible token after ``node``."""
        token = self.rows.argmax(node)
        return token if self._allows(node, token) else self.best(node, 1)[0]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable possible tokens after ``node``, or all."""
        asked, only = k, self._after(node).only
        if only is not None:
            return sorted(self._among(node, only), key=lambda token: (-self.rows.logprob(node, token), token))[:k]
        while True:
            found = self.rows.best(node, asked)
            allowed = self._among(node, found)
            if len(allowed) >= k or len(found) < asked:
                return allowed[:k]
            asked *= 2

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token`` after ``node``; minus infinity if it is impossible."""
        return self.rows.logprob(node, token) if self._allows(node, token) else -math.inf

    def entropy(self, node: int) -> float:
        """Return the entropy of the model's distribution after ``node`` in nats, impossible tokens included."""
        return self.rows.entropy(node)

    def distribution(self, node: int, temperature: float) -> WholeDistribution:
        """Return the distribution among the possible tokens after ``node``."""
        whole, after = self.rows.distribution(node, temperature), self._after(node)
        out = self._barred.get(self._place(node), frozenset())
        if after.only is not None:
            return whole.without(None, (after.only - out) or after.only)
        whole = whole.without(after.foreign, after.possible) if after.foreign else whole
        return whole.without(out) if out else whole

    def _place(self, node: int) -> int:
        """Return the position in the output of the token after ``node``."""
        return len(self._output) + (self._draft.depths[node] if node >= 0 else 0)

    def _allows(self, node: int, token: int) -> bool:
        """Whether ``token`` may follow ``node``, a node of the whole draft."""
        selection = self._selection
        if node < ROOT or (
            token not in selection.special and self._tokens[node] not in selection.pieces and not self._barred
        ):
            return True
        return bool(self._among(node, (token,)))

    def _among(self, node: int, tokens: Iterable[int]) -> list[int]:
        """Return those of ``tokens`` that may follow ``node``, in their order."""
        after = self._after(node)
        out = self._barred.get(self._place(node)) if node >= ROOT else None
        found = after.among(tokens)
        return [token for token in found if token not in out or after.only == frozenset([token])] if out else found

    def _after(self, node: int) -> Next:
        """Return which tokens the selection allows after a node; nodes of the prompt are free."""
        if node < ROOT or not self._selection:
            return _ANYTHING
        if node not in self._next:
            path = [self._draft.tokens[each] for each in self._draft.path(node)]
            self._next[node] = self._selection.after((*self._output, *path))
        return self._next[node]
