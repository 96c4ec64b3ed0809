"""Conditional verification (AASD, section 3.3, equations 3-6).

A draft token from a trusted source passes if its probability reaches a threshold, which is higher if the target model
is uncertain:

    p >= min(alpha * H + beta, p_max),    H = -sum(P log P)

Because of the minimum, the target's most probable token always passes.  Other draft tokens are verified strictly: only
the most probable token passes.  The longest path of passing tokens is accepted; of equally long ones, the most
probable.

Choices that the paper leaves open:

* H is in nats.
* Of equally probable tokens, only the one with the lowest id counts as the most probable.  So alpha = 0 and beta = 1
  are exact acceptance, including ties.
* The most probable token passes every test, including a fixed threshold (equation 3): if rejected, it would be
  generated anyway.
* A drafted end token passes only as the most probable token, so that a copied end does not cut the output short.
  Nothing is accepted after it.
* A passing token may override an end token that the target prefers.  ``end_guard`` (from the authors' earlier CASD: p
  must also exceed the probability of the end token) prevents that; AASD has no such guard, so it is off by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from redraft.decoding.types import ROOT, Draft, Provenance, Rows, Verdict

#: ``test(rows, node, token)`` returns whether a trusted token other than the most probable one may follow ``node``.
Test = Callable[[Rows, int, int], bool]


def entropy_threshold(alpha: float, beta: float) -> Test:
    """p >= alpha * H + beta (equations 4 and 5), with alpha and beta at least 0.

    The paper uses alpha = 0.1 for LLaMA 3.1 and 0.2 for Qwen 2.5, and beta = 0.1.
    """

    def test(rows: Rows, node: int, token: int) -> bool:
        probability = math.exp(rows.logprob(node, token))
        # H needs the whole vocabulary; since it is at least 0, the first comparison often suffices.
        return probability >= beta and probability >= alpha * rows.entropy(node) + beta

    return test


def fixed_threshold(delta: float) -> Test:
    """p >= delta (equation 3); 0.1 in the paper's ablation (Table 4)."""
    return lambda rows, node, token: math.exp(rows.logprob(node, token)) >= delta


def among_best(k: int) -> Test:
    """The token is among the ``k`` most probable ones; 5 in the paper's ablation (Table 4)."""
    return lambda rows, node, token: token in rows.best(node, k)


class Conditional:
    """Accepts trusted draft tokens that pass a test, and other draft tokens that are the target's argmax.

    Args:
        test: `entropy_threshold`, `fixed_threshold` or `among_best`.
        trusted: provenances to which the test applies; the prompt in the paper.
        end_tokens: ids that end an output.
        end_guard: whether a token must also be more probable than every end token.
    """

    def __init__(
        self, test: Test, trusted: Collection[Provenance], end_tokens: frozenset[int], end_guard: bool = False
    ) -> None:
        self._test, self._trusted = test, frozenset(trusted)
        self._end_tokens, self._end_guard = end_tokens, end_guard

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the longest path of passing tokens; of equally long ones, the most probable."""
        reached: dict[int, tuple[int, float]] = {ROOT: (0, 0.0)}  # depth and log-probability of the path to each node
        for child, node in enumerate(draft.parents):
            if node in reached and self._passes(draft, rows, node, child):
                depth, logprob = reached[node]
                reached[child] = (depth + 1, logprob + rows.logprob(node, draft.tokens[child]))
        last = max(reached, key=reached.__getitem__)
        return Verdict(tuple(draft.path(last)), rows.argmax(last))

    def _passes(self, draft: Draft, rows: Rows, node: int, child: int) -> bool:
        token = draft.tokens[child]
        if node >= 0 and draft.tokens[node] in self._end_tokens:
            return False
        if token == rows.argmax(node):
            return True
        if draft.provenance[child] not in self._trusted or token in self._end_tokens:
            return False
        return self._test(rows, node, token) and not (self._end_guard and self._ends_rather(rows, node, token))

    def _ends_rather(self, rows: Rows, node: int, token: int) -> bool:
        """Whether an end token is at least as probable as ``token``."""
        probability = rows.logprob(node, token)
        return any(rows.logprob(node, end) >= probability for end in self._end_tokens)
