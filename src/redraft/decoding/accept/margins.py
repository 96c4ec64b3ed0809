"""The target's confidence in accepted tokens; the display hides uncertain ones (`redraft.captions.stabilise`).

The margin of a token is its probability minus that of the best other token after the same prefix: above 0 for the
target's own choice, below 0 for a token that a bias has kept.  Biased acceptance (`redraft.decoding.accept.biased`)
accepts draft tokens with a margin of at least -beta / (1 - beta).
"""

from __future__ import annotations

import math

from redraft.decoding.types import ROOT, Draft, Rows, Rule, Verdict


class Sure:
    """Applies another rule, and records where the target becomes uncertain.

    Args:
        rule: the rule to apply.
        least: minimum margin of a certain token.

    Attributes:
        kept: number of tokens before the first one with a smaller margin, including an end token.
        bias: the rule's bias, if it has one.
    """

    def __init__(self, rule: Rule, least: float) -> None:
        self._rule, self._least = rule, least
        self.bias: float | None = getattr(rule, "bias", None)
        self._doubtful = False
        self.kept = 0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the rule."""
        verdict = self._rule.judge(draft, rows)
        tokens = [draft.tokens[node] for node in verdict.accepted]
        tokens += () if verdict.token is None else (verdict.token,)
        for node, token in zip((ROOT, *verdict.accepted), tokens, strict=False):
            # Nothing after the first uncertain token is shown, so later margins do not matter.
            self._doubtful = self._doubtful or not _reaches(rows, node, token, self._least)
            self.kept += not self._doubtful
        return verdict


def _reaches(rows: Rows, node: int, token: int, least: float) -> bool:
    """Whether a margin is at least ``least``; probabilities are computed only if the ranking does not decide it."""
    best = token == rows.argmax(node)
    if best and least <= 0:
        return True
    return (best or least < 0) and margin(rows, node, token) >= least


def margin(rows: Rows, node: int, token: int) -> float:
    """Return the probability of ``token`` after ``node`` minus that of the best other token, from -1 to 1."""
    (best, first), *others = rows.top_k(node, 2)
    if token == best:
        return math.exp(first) - (math.exp(others[0][1]) if others else 0.0)
    return math.exp(rows.logprob(node, token)) - math.exp(first)
