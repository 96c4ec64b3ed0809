"""Rejection sampling: the output is distributed as if the target alone had been sampled.

Speculative sampling (Leviathan et al. 2023, "Fast inference from transformers via speculative decoding", Algorithm 1;
Chen et al. 2023, "Accelerating large language model decoding with speculative sampling", Algorithm 2).  A token drawn
from the drafter's distribution q is kept with probability min(1, p / q), where p is the target's distribution.  In
place of the first that is not, a token is drawn from max(0, p - q), normalised; after a draft that is kept whole, one
is drawn from p.  The target's temperature and nucleus belong to p, and whatever the drafter draws from is its q.

Over the empty draft this is plain sampling.
"""

from __future__ import annotations

from redraft.decoding.sampling import Sampler
from redraft.decoding.types import Distribution, Draft, Rows, Verdict


class Rejection:
    """Keeps draft tokens at random, so that the target's distribution comes out.

    Args:
        sampler: makes the target's distribution and draws from it; the one that the drafter draws with, too.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The first tokens of a chain, and one drawn after them.

        Raises:
            ValueError: the draft has branches.
        """
        if not draft.is_chain:
            raise ValueError("rejection sampling needs a draft without branches")
        for node, token in enumerate(draft.tokens):
            target = self._sampler.distribution(rows, node - 1)
            # A token that nobody drew was certain to be proposed.
            drafted = draft.distributions[node] if draft.distributions else {token: 1.0}
            if self._sampler.uniform() * drafted[token] >= target.get(token, 0.0):
                return Verdict(tuple(range(node)), self._sampler.draw(residual(target, drafted)))
        whole = tuple(range(len(draft)))
        return Verdict(whole, self._sampler.draw(self._sampler.distribution(rows, len(draft) - 1)))


def residual(target: Distribution, drafted: Distribution) -> Distribution:
    """max(0, p - q), not normalised: what the target has beyond the drafter."""
    rest = {token: p - drafted.get(token, 0.0) for token, p in target.items() if p > drafted.get(token, 0.0)}
    # Two distributions that differ by rounding alone leave nothing, and either will do.
    return rest or target
