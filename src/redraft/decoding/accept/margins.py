"""How sure the target is of what a rule keeps; the display hides what it is not sure of (`redraft.captions.stabilise`).

The margin of a token is its probability less that of the best other token after the same prefix: above 0 for the
target's own choice, below 0 for a token that a bias has kept against it.  Biased acceptance
(`redraft.decoding.accept.biased`) keeps draft tokens of a margin of -beta / (1 - beta) and more.
"""

from __future__ import annotations

import math

from redraft.decoding.types import ROOT, Draft, HasBias, Rows, Rule, Verdict


class Margins:
    """Judges as another rule does, and notes the margin of every token that is kept.

    Args:
        rule: the one that decides.

    Attributes:
        margins: of the tokens of the output so far, an end token included.
        bias: of the rule that decides, if it has one.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.bias = rule.bias if isinstance(rule, HasBias) else None
        self.margins: list[float] = []

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The verdict of the rule."""
        verdict = self._rule.judge(draft, rows)
        node = ROOT
        for child in verdict.accepted:
            self._note(rows, node, draft.tokens[child])
            node = child
        if verdict.token is not None:
            self._note(rows, node, verdict.token)
        return verdict

    def _note(self, rows: Rows, node: int, token: int) -> None:
        self.margins.append(margin(rows, node, token))


class Sure(Margins):
    """Counts only for how long the target is sure of what is kept, which is cheaper.

    Args:
        rule: the one that decides.
        least: the least margin of a token that the target is sure of.

    Attributes:
        kept: how many tokens were decided before the first one with a smaller margin; an end token counts too.
    """

    def __init__(self, rule: Rule, least: float) -> None:
        super().__init__(rule)
        self._least = least
        self._doubtful = False
        self.kept = 0

    def _note(self, rows: Rows, node: int, token: int) -> None:
        # Behind the first doubt nothing is shown, so nothing more need be known.
        self._doubtful = self._doubtful or not _reaches(rows, node, token, self._least)
        self.kept += not self._doubtful


def _reaches(rows: Rows, node: int, token: int, least: float) -> bool:
    """Whether a margin is ``least`` or more; probabilities are worked out only where their order does not tell."""
    best = token == rows.argmax(node)
    if best and least <= 0:
        return True
    return (best or least <= 0) and margin(rows, node, token) >= least


def margin(rows: Rows, node: int, token: int) -> float:
    """The probability of ``token`` after ``node`` less that of the best other token, from -1 to 1."""
    (best, first), (_, second) = rows.top_k(node, 2)
    if token == best:
        return math.exp(first) - math.exp(second)
    return math.exp(rows.logprob(node, token)) - math.exp(first)
