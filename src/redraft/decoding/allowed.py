"""Rows and drafts without impossible tokens, for every rule and engine alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from redraft.decoding.selection import Next, Selection
from redraft.decoding.types import ROOT, Draft, Rows, Rule, Verdict

_ANYTHING = Next()
#: More than any vocabulary has.
ALL = 1 << 30
#: Number of tokens from which on a whole row is read at once.
_MANY = 100


class Possible:
    """Which tokens may follow each node of a draft.

    Args:
        draft: the draft.
        output: output ids before the draft.
        selection: which tokens the output may contain.
        barred: position in the output -> id of a token that is impossible there.
    """

    def __init__(self, draft: Draft, output: tuple[int, ...], selection: Selection, barred: Mapping[int, int]) -> None:
        self._paths = {ROOT: output}
        for node, parent in enumerate(draft.parents):
            self._paths[node] = (*self._paths[parent], draft.tokens[node])
        self._selection, self._barred = selection, barred
        self._next: dict[int, Next] = {}

    def after(self, node: int) -> Next:
        """Return which tokens the selection allows after a node; nodes of the prompt are free."""
        if node not in self._next:
            free = node < ROOT or not self._selection
            self._next[node] = _ANYTHING if free else self._selection.after(self._paths[node])
        return self._next[node]

    def allows(self, node: int, token: int) -> bool:
        """Whether ``token`` may follow ``node``."""
        return bool(self.among(node, (token,)))

    def among(self, node: int, tokens: Iterable[int]) -> list[int]:
        """Return those of ``tokens`` that may follow ``node``, in their order."""
        barred = self._barred.get(len(self._paths[node])) if node >= ROOT else None
        return [token for token in self.after(node).among(tokens) if token != barred]

    def nodes(self, draft: Draft) -> list[int]:
        """Return the nodes of ``draft`` that can be accepted: without impossible tokens and what follows them."""
        kept = {ROOT}
        for node, (parent, token) in enumerate(zip(draft.parents, draft.tokens, strict=True)):
            if parent in kept and self.allows(parent, token):
                kept.add(node)
        return sorted(kept - {ROOT})


class AllowedRows:
    """Rows in which some tokens are impossible; implements `redraft.decoding.types.Rows`.

    The probabilities of the other tokens stay as they are, and are not scaled to add up to 1.

    Args:
        rows: the model's rows.
        possible: which tokens may follow each node.
        nodes: nodes of the draft by their new numbers; None leaves the numbers as they are.
    """

    def __init__(self, rows: Rows, possible: Possible, nodes: Sequence[int] | None = None) -> None:
        self._rows, self._possible, self._nodes = rows, possible, nodes

    def _node(self, node: int) -> int:
        return node if self._nodes is None or node < 0 else self._nodes[node]

    def argmax(self, node: int) -> int:
        """Return the most probable possible token after ``node``."""
        token = self._rows.argmax(self._node(node))
        return token if self._possible.allows(self._node(node), token) else self.best(node, 1)[0]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable possible tokens after ``node`` (or all)."""
        node, asked = self._node(node), k + 2
        only = self._possible.after(node).only
        if only is not None:  # even if it is barred, since something must follow
            return sorted(only, key=lambda token: (-self._rows.logprob(node, token), token))[:k]
        while True:
            found = self._rows.best(node, asked)
            allowed = self._possible.among(node, found)
            if len(allowed) >= k or len(found) < asked:
                return allowed[:k]
            asked *= 8

    def top_k(self, node: int, k: int) -> list[tuple[int, float]]:
        """Return the tokens of `best` with their log-probabilities."""
        inner = self._node(node)
        if k < _MANY or self._possible.after(inner).only is not None:
            return [(token, self._rows.logprob(inner, token)) for token in self.best(node, k)]
        found = self._rows.top_k(inner, ALL)  # one call instead of thousands
        kept = frozenset(self._possible.among(inner, (token for token, _log in found)))
        return [(token, log) for token, log in found if token in kept][:k]

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token`` after ``node``; minus infinity if it is impossible."""
        node = self._node(node)
        return self._rows.logprob(node, token) if self._possible.allows(node, token) else -math.inf

    def entropy(self, node: int) -> float:
        """Return the entropy of the model's distribution after ``node`` in nats, impossible tokens included."""
        return self._rows.entropy(self._node(node))


def judge(rule: Rule, draft: Draft, rows: Rows, possible: Possible) -> Verdict:
    """Return the verdict of a rule that does not see impossible tokens, which it might accept: at ``beta`` 0.5, all.

    The rule of a sampled draft must see what was drawn; it rejects tokens of probability 0.
    """
    nodes = possible.nodes(draft)
    if draft.distributions or len(nodes) == len(draft):
        return rule.judge(draft, AllowedRows(rows, possible))
    verdict = rule.judge(draft.keeping(nodes), AllowedRows(rows, possible, nodes))
    return Verdict(tuple(nodes[node] for node in verdict.accepted), verdict.token)
