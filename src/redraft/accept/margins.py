"""How sure the target is of what a rule keeps; the display hides what it is not sure of (`redraft.stabilise`).

The margin of a token is its probability less that of the best other token after the same prefix: above 0 for the
target's own choice, below 0 for a token that a bias has kept against it.  Biased acceptance (`redraft.accept.biased`)
keeps draft tokens of a margin of -beta / (1 - beta) and more.
"""

from __future__ import annotations

import math

from redraft.types import ROOT, Draft, Rows, Rule, Verdict


class Margins:
    """Judges as another rule does.

    Args:
        rule: the one that decides.

    Attributes:
        found: the margin of every token that was decided so far, in the order of the output; of the end token too.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.found: list[float] = []

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The verdict of the rule."""
        verdict = self._rule.judge(draft, rows)
        node = ROOT
        for child in verdict.accepted:
            self.found.append(margin(rows, node, draft.tokens[child]))
            node = child
        if verdict.token is not None:
            self.found.append(margin(rows, node, verdict.token))
        return verdict


def margin(rows: Rows, node: int, token: int) -> float:
    """The probability of ``token`` after ``node`` less that of the best other token, from -1 to 1."""
    (best, first), (_, second) = rows.top_k(node, 2)
    if token == best:
        return math.exp(first) - math.exp(second)
    return math.exp(rows.logprob(node, token)) - math.exp(first)
