"""A small model drafts, token by token, until it is unsure.

Fallback policy of BiLD (section 3.3; Algorithm 1, lines 3-6): the small model goes on while its best token's
probability is above a threshold.  Without the threshold this is the fixed window of speculative sampling (Leviathan
et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2).  Tokens are drawn from the small model's distribution, which
at temperature 0 is its best token (BiLD, section 7.4).

The end token is drafted like any other and verified by the target; nothing is drafted after it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from redraft.decoding.sampling import Sampler
from redraft.decoding.types import (
    DRAFT_MODEL,
    ROOT,
    Asking,
    Context,
    Distribution,
    Draft,
    Provenance,
    Rows,
    Score,
    Verdict,
)


class SmallModel:
    """Drafts with one pass of the small model per token.

    Args:
        sampler: draws the tokens.
        window: the most tokens of one draft, at least 1; BiLD's are at most 10 (section 7.1.2).
        end_tokens: ids that end an output.
        fallback: alpha_FB in [0, 1]; drafting stops where the small model's best probability is not above it.  0 never
            stops, 1 never starts.  The policy looks at the model's own probabilities, also where tokens are sampled.
    """

    def __init__(self, sampler: Sampler, window: int, end_tokens: frozenset[int], fallback: float = 0.0) -> None:
        self._sampler, self._window, self._end_tokens, self._fallback = sampler, window, end_tokens, fallback

    def propose(self, context: Context) -> Asking[Draft]:
        """The small model's continuation, with the distributions that its tokens were drawn from; may be empty."""
        prefix = context.prompt + context.output
        tokens: list[int] = []
        distributions: list[Distribution] = []
        while len(tokens) < min(self._window, context.room):
            rows = yield Score((*prefix, *tokens), model=DRAFT_MODEL, encoder=context.encoder)
            if self._unsure(rows):
                break
            distributions.append(self._sampler.distribution(rows, ROOT))
            tokens.append(self._sampler.draw(distributions[-1]))
            if tokens[-1] in self._end_tokens:
                break
        return replace(Draft.chain(tokens, Provenance.MODEL), distributions=tuple(distributions))

    def _unsure(self, rows: Rows) -> bool:
        # Rounding must not lift a probability above 1, which a threshold of 1 relies on.
        return min(1.0, math.exp(rows.logprob(ROOT, rows.argmax(ROOT)))) <= self._fallback

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Nothing to learn: the small model's cache is rolled back by its next request."""
