"""Rejection sampling: the output has the same distribution as sampling from the target alone.

Speculative sampling (Leviathan et al. 2023, "Fast inference from transformers via speculative decoding", Algorithm 1;
Chen et al. 2023, "Accelerating large language model decoding with speculative sampling", Algorithm 2).  A token drawn
from the drafter's distribution q is accepted with probability min(1, p / q), where p is the target's distribution.  The
first rejected token is replaced by one drawn from max(0, p - q), normalised; after a fully accepted draft, a token is
drawn from p.  p includes the target's temperature and nucleus; q is the distribution the drafter sampled from.

With the empty draft this is plain sampling.
"""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.drafters import Nothing, SmallModel
from redraft.decoding.method import Method, Setup
from redraft.decoding.rules import WINDOW, Sampler, sampler, sampling
from redraft.decoding.types import Distribution, Draft, Drafter, Rows, Rule, Verdict, WholeDistribution


class Rejection(Rule):
    """Accepts draft tokens at random so that the target's distribution is preserved.

    Args:
        sampler: computes the target's distribution and draws from it; the same one as the drafter's.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the first tokens of a chain, and draw one after them.

        Raises:
            ValueError: the draft is a tree.
        """
        if not draft.is_chain:
            raise ValueError("rejection sampling needs a draft without branches")
        for node, token in enumerate(draft.tokens):
            target = self._sampler.distribution(rows, node - 1)
            # A token that was not sampled was proposed with certainty.
            drafted = draft.distributions[node] if draft.distributions else {token: 1.0}
            if self._sampler.uniform() * drafted[token] >= target.get(token, 0.0):
                return Verdict(tuple(range(node)), self._sampler.draw(residual(target, drafted)))
        whole = tuple(range(len(draft)))
        return Verdict(whole, self._sampler.draw(self._sampler.distribution(rows, len(draft) - 1)))


def residual(target: Distribution, drafted: Distribution) -> Distribution:
    """Return max(0, p - q), not normalised."""
    if isinstance(target, WholeDistribution):
        return target.minus(drafted)
    rest = {token: p - drafted.get(token, 0.0) for token, p in target.items() if p > drafted.get(token, 0.0)}
    # If both distributions are equal except for rounding, nothing is left, and either can be used.
    return rest or target


def _speculative_sampling(setup: Setup) -> tuple[Drafter, Rule]:
    drawing = sampler(setup)
    return SmallModel(drawing, setup["window"], setup.ends), Rejection(drawing)


METHODS = (
    Method(
        "sampling",
        "re-translation from scratch with sampled tokens, one pass per token",
        "Leviathan et al. 2023, section 2.2 (standardised sampling)",
        "nothing",
        "rejection sampling",
        lambda setup: (Nothing(), Rejection(sampler(setup))),
        sampling(1.0),
    ),
    Method(
        "speculative-sampling",
        "a small model drafts samples, accepted so that the target's distribution is preserved",
        "Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2",
        "small model, fixed window",
        "rejection sampling",
        _speculative_sampling,
        (replace(WINDOW, default=5), *sampling(1.0)),
        small_model=True,
    ),
)
