"""Drafters that several papers share: nothing, a tree under construction, and a small model.

This is BiLD's fallback policy (section 3.3; Algorithm 1, lines 3-6): the small model continues while the probability of
its best token is above a threshold.  Without the threshold this is the fixed window of speculative sampling (Leviathan
et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2).  Tokens are sampled from the small model's distribution; at
temperature 0 that is its most probable token (BiLD, section 7.4).

The end token is drafted like any other; nothing is drafted after it.  The target verifies it with the tokens before it,
except in BiLD's Algorithm 1 (line 2), where the small model's own end ends the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from redraft.decoding.rules import Sampler
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


class Nothing(Drafter):
    """Proposes nothing.  With exact acceptance this is greedy re-translation (RT in the papers)."""


class Tree:
    """Merges paths into a tree.

    Args:
        leaves: maximum leaves; a backend needs a branch of its cache for each except the first.
        nodes: maximum nodes; one pass computes all of them.  None does not limit them.
        prevailing: the provenance of a node that paths with this one and another share; otherwise the first one stays.
    """

    def __init__(self, leaves: int, nodes: int | None = None, prevailing: str | None = None) -> None:
        self._most_leaves, self._most_nodes, self._prevailing = leaves, nodes, prevailing
        self._leaves: set[int] = set()
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._provenance: list[str] = []
        #: Parent and token -> node.
        self._nodes: dict[tuple[int, int], int] = {}

    def add_path(self, parent: int, steps: Iterable[tuple[int, str]]) -> list[int]:
        """Add a path below ``parent`` as far as the limits allow, reading no further; return its nodes."""
        path: list[int] = []
        for token, provenance in steps:
            node = self._nodes.get((parent, token))
            if node is None:
                # Below a leaf, a new node replaces it as a leaf; elsewhere it adds one.
                leaves, node = {*self._leaves - {parent}, len(self._tokens)}, len(self._tokens)
                if len(leaves) > self._most_leaves or node == self._most_nodes:
                    break
                self._leaves, self._nodes[parent, token] = leaves, node
                self._tokens.append(token)
                self._parents.append(parent)
                self._provenance.append(provenance)
            elif provenance == self._prevailing:
                self._provenance[node] = provenance
            path.append(node)
            parent = node
        return path

    def draft(self, prompt_rows: int = 1, *, leaves_only: bool = False) -> Draft:
        """Return the draft with ``prompt_rows`` and ``leaves_only`` (see `Draft`)."""
        nodes = tuple(self._tokens), tuple(self._parents), tuple(self._provenance)
        return Draft(*nodes, prompt_rows=prompt_rows, leaves_only=leaves_only)


@dataclass
class SmallModel(Drafter):
    """Drafts with one pass of the small model per token.

    Attributes:
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

    sampler: Sampler
    window: int
    ends: frozenset[int]
    fallback: float = 0.0
    settling: frozenset[int] = frozenset()
    margin: bool = False

    def drafting(self, context: Context) -> Asking[Draft]:
        """Return the small model's continuation with the distributions of its tokens; may be empty."""
        prefix = context.prompt.ids + context.output
        tokens: list[int] = []
        distributions: list[Distribution] = []
        while len(tokens) < min(self.window, context.room):
            rows = yield Score((*prefix, *tokens), model=DRAFT_MODEL, encoder=context.prompt.encoder)
            if self._confidence(rows) <= self.fallback:
                break
            distributions.append(self.sampler.distribution(rows, ROOT))
            tokens.append(self.sampler.draw(distributions[-1]))
            if tokens[-1] in self.ends:
                break
        ended = not self.settling.isdisjoint(tokens)
        return replace(Draft.chain(tokens, Provenance.MODEL), distributions=tuple(distributions), settled=ended)

    def _confidence(self, rows: Rows) -> float:
        # Rounding must not lift a probability above 1, or a threshold of 1 would not hold.
        if not self.margin:
            return min(1.0, math.exp(rows.logprob(ROOT, rows.argmax(ROOT))))
        first, *second = (min(1.0, math.exp(log)) for _token, log in top_k(rows, ROOT, 2))
        return first - sum(second)
