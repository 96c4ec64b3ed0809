"""Biased acceptance (SSBD v2, section 3.3, equation 3; Algorithm 1, lines 5-11).

The paper mixes the target's distribution with the draft token, P' = (1 - beta) P + beta delta(draft), and accepts the
draft token if it is the argmax of P'.  That is equivalent to

    p_max - p_draft <= beta / (1 - beta)

which bounds a difference, not a ratio.  From beta = 0.5 the right side is at least 1, and the rule is continuous
decoding.

There are two departures from the paper, each disabled in its setting:

* ``floor`` (default 0): the bias accepts no token of lower probability.  At beta = 0.2 *any* token passes if p_max <=
  0.25; a small floor prevents that.
* Below beta = 0.5 the end of the output is the target's own decision: the bias neither accepts a drafted end token that
  is not the argmax nor overrides an end token that is.

`FirstStretch` and `ByProvenance` restrict the bias to the previous output.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from redraft.decoding.accept.exact import Everything, favourite, walk
from redraft.decoding.types import Draft, Provenance, Rows, Rule, Verdict


class Biased:
    """Accepts draft tokens that are nearly as probable as the target's best.

    Args:
        beta: bias strength in [0, 1]; 0 is exact acceptance, 0.2 the paper's choice.
        floor: minimum probability of a token accepted by the bias, in [0, 1].
        end_tokens: ids that end an output.

    Attributes:
        bias: beta.
    """

    def __init__(self, beta: float, floor: float = 0.0, end_tokens: frozenset[int] = frozenset()) -> None:
        self.bias = beta
        self._margin = math.inf if beta >= 0.5 else beta / (1 - beta)
        self._floor, self._end_tokens = floor, end_tokens
        self._keeps_all = self._margin == math.inf and floor == 0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the longest path of tokens that the biased target prefers."""
        if self._keeps_all:
            return Everything().judge(draft, rows)

        def choose(node: int, children: list[int]) -> int | None:
            child = favourite(draft, rows, node, children)
            if child is not None:
                return child
            probable = max(children, key=lambda child: rows.logprob(node, draft.tokens[child]))
            return probable if self.keeps(rows, node, draft.tokens[probable]) else None

        return walk(draft, rows, choose)

    def keeps(self, rows: Rows, node: int, drafted: int) -> bool:
        """Whether a drafted token may follow ``node``."""
        best = rows.argmax(node)
        if self._keeps_all or drafted == best:
            return True
        # An exact rule must not accept ties of equal probability, hence the test for a margin of 0.
        if self._margin == 0 or best in self._end_tokens or drafted in self._end_tokens:
            return False
        probability = math.exp(rows.logprob(node, drafted))
        return probability >= self._floor and math.exp(rows.logprob(node, best)) - probability <= self._margin


class FirstStretch:
    """Judges the previous output as SSBD does, and guesses exactly, so that the output equals SSBD's.

    Args:
        biased: the rule for the previous output, which is a chain from the root.
    """

    def __init__(self, biased: Biased) -> None:
        self._biased = biased

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the longest path under both rules."""
        return walk(draft, rows, partial(self._choose, draft, rows))

    def _choose(self, draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
        """Return the previous output's token if the bias keeps it; among guesses, the target's own token."""
        first = children[0]
        if draft.provenance[first] is Provenance.PREVIOUS:
            return first if self._biased.keeps(rows, node, draft.tokens[first]) else None
        return favourite(draft, rows, node, children)


class ByProvenance:
    """Judges a draft by the rule for the provenance of its first token.

    Args:
        rules: the rules by provenance.
        otherwise: the rule for all other drafts, including the empty one.
    """

    def __init__(self, rules: Mapping[Provenance, Rule], otherwise: Rule) -> None:
        self._rules, self._otherwise = rules, otherwise

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the rule for this draft."""
        rule = self._rules.get(draft.provenance[0], self._otherwise) if len(draft) else self._otherwise
        return rule.judge(draft, rows)
