"""Rollback: the large model keeps what it finds probable enough (BiLD, section 3.4, equation 3; Algorithm 1, 9-16).

The distance of the two models at a draft token is the cross-entropy of the large model's distribution with the small
model's choice (section 4.1):

    d = -log p_L(draft token)

Draft tokens are kept while d <= alpha_RB.  At the first that is not, it and all after it are dropped, and the large
model's own token stands in its place; after a draft that is kept whole, the large model's token follows it.  The end
token has no exemption: drafted, it is verified like any other; as the large model's own token, it ends the output.
"""

from __future__ import annotations

from redraft.decoding.accept.walk import walk
from redraft.decoding.sampling import Sampler
from redraft.decoding.types import ROOT, Draft, Rows, Verdict


class Rollback:
    """Keeps draft tokens of a log-probability of at least ``-threshold``.

    Args:
        threshold: alpha_RB, in nats, 0 or more.  0 keeps only tokens of probability 1; 2 those of 0.135 and more.
        sampler: draws the large model's own token (section 7.4); the distance is that of the model's own distribution
            even so, not of the nucleus.
    """

    def __init__(self, threshold: float, sampler: Sampler) -> None:
        self._threshold, self._sampler = threshold, sampler

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The path kept, of siblings the most probable one, and the large model's token after it."""

        def choose(node: int, children: list[int]) -> int | None:
            logs = {child: rows.logprob(node, draft.tokens[child]) for child in children}
            best = max(children, key=logs.__getitem__)
            return best if -logs[best] <= self._threshold else None

        path = walk(draft, rows, choose).accepted
        last = path[-1] if path else ROOT
        return Verdict(path, self._sampler.draw(self._sampler.distribution(rows, last)))
