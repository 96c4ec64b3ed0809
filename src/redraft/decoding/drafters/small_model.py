"""Draft with a small model, token by token, until it is uncertain.

This is BiLD's fallback policy (section 3.3; Algorithm 1, lines 3-6): the small model continues while the probability of
its best token is above a threshold.  Without the threshold this is the fixed window of speculative sampling (Leviathan
et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2).  Tokens are sampled from the small model's distribution; at
temperature 0 that is its most probable token (BiLD, section 7.4).

The end token is drafted like any other; nothing is drafted after it.  The target verifies it with the tokens before it,
except in BiLD's Algorithm 1 (line 2), where the small model's own end ends the output.
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
    Drafter,
    Provenance,
    Rows,
    Score,
    top_k,
)


class SmallModel(Drafter):
    """Drafts with one pass of the small model per token.

    Args:
        sampler: samples the tokens.
        window: maximum length of a draft, at least 1; at most 10 in BiLD (section 7.1.2).
        ends: ids that may end an output.
        fallback: alpha_FB in [0, 1]; drafting stops when the small model's confidence is not above it.  0 never stops,
            1 never starts.  The confidence is the probability of its best token, the model's own even if tokens are
            sampled.
        margin: whether confidence is the lead of the best token over the second instead (CALM, Schuster et al. 2022,
            section 3.5: softmax response).
        settling: those of them with which a draft ends the output unverified.
    """

    def __init__(
        self,
        sampler: Sampler,
        window: int,
        ends: frozenset[int],
        fallback: float = 0.0,
        settling: frozenset[int] = frozenset(),
        *,
        margin: bool = False,
    ) -> None:
        self._sampler, self._window, self._ends, self._fallback = sampler, window, ends, fallback
        self._settling, self._margin = settling, margin

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the small model's continuation with the distributions of its tokens; may be empty."""
        prefix = context.prompt + context.output
        tokens: list[int] = []
        distributions: list[Distribution] = []
        while len(tokens) < min(self._window, context.room):
            rows = yield Score((*prefix, *tokens), model=DRAFT_MODEL, encoder=context.encoder)
            if self._confidence(rows) <= self._fallback:
                break
            distributions.append(self._sampler.distribution(rows, ROOT))
            tokens.append(self._sampler.draw(distributions[-1]))
            if tokens[-1] in self._ends:
                break
        ended = not self._settling.isdisjoint(tokens)
        return replace(Draft.chain(tokens, Provenance.MODEL), distributions=tuple(distributions), settled=ended)

    def _confidence(self, rows: Rows) -> float:
        # Rounding must not lift a probability above 1, or a threshold of 1 would not hold.
        if not self._margin:
            return min(1.0, math.exp(rows.logprob(ROOT, rows.argmax(ROOT))))
        first, *second = (min(1.0, math.exp(log)) for _token, log in top_k(rows, ROOT, 2))
        return first - sum(second)
