"""BiLD's rule for a small model's drafts: rollback."""

from __future__ import annotations

from redraft.decoding.rules.exact import walk
from redraft.decoding.sampling import Sampler
from redraft.decoding.types import ROOT, Draft, Rows, Verdict


class Rollback:
    """Rollback: the large model keeps draft tokens that it finds probable enough (BiLD, section 3.4, equation 3).

    As in Algorithm 1, lines 9-16, draft tokens are accepted while d <= alpha_RB, where d is the cross-entropy between
    the large model's distribution and the small model's hard label (section 4.1), d = -log p_L(draft token).  The first
    token beyond that is dropped with everything after it, and replaced by the large model's own token, which also
    follows a fully accepted draft.  A drafted end token is verified like any other.

    Args:
        threshold: alpha_RB in nats, at least 0.  0 accepts only tokens of probability 1; 2 those of at least 0.135.
        sampler: draws the large model's own token (section 7.4); the distance still uses the model's full distribution
            rather than the nucleus.
    """

    def __init__(self, threshold: float, sampler: Sampler) -> None:
        self._threshold, self._sampler = threshold, sampler

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept a path, of siblings the most probable one, and the large model's token after it."""

        def choose(node: int, children: list[int]) -> int | None:
            logs = {child: rows.logprob(node, draft.tokens[child]) for child in children}
            best = max(children, key=logs.__getitem__)
            return best if -logs[best] <= self._threshold else None

        path = walk(draft, rows, choose).accepted
        last = path[-1] if path else ROOT
        return Verdict(path, self._sampler.draw(self._sampler.distribution(rows, last)))
