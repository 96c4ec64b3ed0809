"""Conditional verification (AASD, section 3.3, equations 3-6).

A draft token from a source that is trusted passes if its probability reaches a threshold, which is higher where the
target is undecided:

    p >= min(alpha * H + beta, p_max),    H = -sum(P log P)

The minimum lets the target's best token always pass.  All other tokens are verified strictly: only the best one passes.
Of the paths whose tokens all pass, the longest is accepted, and of equally long ones the most probable.

What the paper leaves open, and what is done here:

* H is in nats.
* A token as probable as the best one, but with a higher id, does not count as the best.  So alpha = 0 and beta = 1 are
  exact acceptance to the last tie.
* The best token passes every test, that of a fixed threshold (equation 3) too: refused, it would be generated anyway.
* A drafted end token passes only as the best one, so that a copied end does not cut the output short.  Nothing is
  accepted after it.
* A token that passes may overrule an end that the target wants.  ``end_guard`` (from the authors' earlier CASD: p must
  exceed the probability of the end too) forbids that; it is off in AASD.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from redraft.decoding.accept.walk import longest
from redraft.decoding.types import Draft, Provenance, Rows, Verdict

#: ``test(rows, node, token)`` -> whether a trusted token that is not the target's best may follow ``node``.
Test = Callable[[Rows, int, int], bool]


def entropy_threshold(alpha: float, beta: float) -> Test:
    """p >= alpha * H + beta (equations 4 and 5); alpha and beta are 0 or more.  The paper's are 0.1 and 0.1."""

    def test(rows: Rows, node: int, token: int) -> bool:
        probability = math.exp(rows.logprob(node, token))
        # The entropy takes a look at the whole vocabulary and is never negative, so it often need not be known.
        return probability >= beta and probability >= alpha * rows.entropy(node) + beta

    return test


def fixed_threshold(delta: float) -> Test:
    """p >= delta (equation 3); 0.1 in the ablation of Table 4."""
    return lambda rows, node, token: math.exp(rows.logprob(node, token)) >= delta


def among_best(k: int) -> Test:
    """Whether the token is among the ``k`` most probable ones; 5 in the ablation of Table 4."""
    return lambda rows, node, token: token in rows.best(node, k)


class Conditional:
    """Keeps trusted draft tokens that pass a test, and others where they are the target's argmax.

    Args:
        test: `entropy_threshold`, `fixed_threshold` or `among_best`.
        trusted: the provenances to which it applies; the prompt in the paper.
        end_tokens: ids that end an output.
        end_guard: whether a token must be more probable than every end token as well.
    """

    def __init__(
        self, test: Test, trusted: Collection[Provenance], end_tokens: frozenset[int], end_guard: bool = False
    ) -> None:
        self._test, self._trusted = test, frozenset(trusted)
        self._end_tokens, self._end_guard = end_tokens, end_guard

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The longest path whose tokens all pass."""

        def passes(node: int, child: int) -> bool:
            token = draft.tokens[child]
            if node >= 0 and draft.tokens[node] in self._end_tokens:
                return False
            if token == rows.argmax(node):
                return True
            if draft.provenance[child] not in self._trusted or token in self._end_tokens:
                return False
            return self._test(rows, node, token) and not (self._end_guard and self._ends_rather(rows, node, token))

        return longest(draft, rows, passes)

    def _ends_rather(self, rows: Rows, node: int, token: int) -> bool:
        """Whether an end token is at least as probable."""
        probability = rows.logprob(node, token)
        return any(rows.logprob(node, end) >= probability for end in self._end_tokens)
