"""Choose the part of a draft that is worth the cost of verifying it.

A pass over n new tokens takes T(n) seconds and yields the accepted tokens and one more.  An accepted guess saves one of
the passes that would otherwise generate the output's tokens.  So the nodes of a draft tree are chosen to maximise

    sum of the nodes' probabilities of being accepted  -  throughput * T(tail + nodes)

where throughput is the tokens per second of these passes so far; the draft that maximises this also maximises the
throughput (Dinkelbach 1967).  The pass that verifies the previous output is not counted in it: it may accept thirty
tokens where others accept one or two, so time would seem too valuable and worthwhile guesses would be dropped.  The
previous output itself is never shortened: each dropped token that would have been accepted costs a pass.

Nodes are added in order of probability, and the best of these drafts is used.  A node is never more probable than its
parent, so the result is a tree.  If a pass over many tokens costs no more than one over a single token, the whole draft
is used; if T is steep, only nearly certain tokens are.

The probability that a node is accepted after its parent is learned from earlier drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from redraft.decoding.cost import Cost
from redraft.decoding.types import OF_PREVIOUS, ROOT, Draft, Provenance, Verdict

#: Seconds that a pass must cost a request for guesses: below, drafting them and learning from every pass takes longer
#: than the few passes that they save.
LEAST_PASS = 0.005
#: Depth from which positions of a draft are no longer distinguished.
DEEPEST = 6
#: Acceptance rates assumed before any observation: of guesses, and of the previous output.
PRIOR, PRIOR_OF_PREVIOUS = 0.5, 0.95
#: Weight of the prior rates in tokens.
PRIOR_TOKENS = 2.0
#: Decay of older observations per draft token tried.
KEPT = 0.995
#: Decay of the throughput per pass.
KEPT_THROUGHPUT = 0.999


class Kind(NamedTuple):
    """Features of a draft token that predict its acceptance.

    Attributes:
        provenance: its origin.
        depth: its depth in the draft, in steps chosen by its source, at most `DEEPEST`.
        rank: number of more probable guesses from the same source.
        known: another feature of its source, such as the length of the matching context.
    """

    provenance: Provenance
    depth: int
    rank: int = 0
    known: int = 0


@dataclass(slots=True)
class _Rate:
    accepted: float
    tried: float


class Acceptance:
    """Acceptance rate of draft tokens after an accepted parent, by kind; kept for the whole stream."""

    def __init__(self) -> None:
        self._rates: dict[Kind, _Rate] = {}

    def learn(self, draft: Draft, kinds: Sequence[Kind], verdict: Verdict) -> None:
        """Count the nodes that the target has judged: the children of the root and of accepted nodes."""
        accepted = {ROOT, *verdict.accepted}
        for node, (parent, kind) in enumerate(zip(draft.parents, kinds, strict=True)):
            if parent in accepted:
                rate = self._rates.get(kind) or _Rate(PRIOR_TOKENS * self._believed(kind), PRIOR_TOKENS)
                rate.accepted = KEPT * rate.accepted + (node in accepted)
                rate.tried = KEPT * rate.tried + 1
                self._rates[kind] = rate

    def _believed(self, kind: Kind) -> float:
        """Return the rate of a kind; a depth that was never tried has the rate of the depth above it."""
        while (rate := self._rates.get(kind)) is None:
            if not kind.depth:
                return PRIOR_OF_PREVIOUS if kind.provenance in OF_PREVIOUS else PRIOR
            kind = Kind(kind.provenance, kind.depth - 1, kind.rank, kind.known)
        return rate.accepted / rate.tried

    def reached(self, draft: Draft, kinds: Sequence[Kind]) -> list[float]:
        """Return the (n,) probabilities of each node being accepted together with all its ancestors."""
        found: list[float] = []
        for kind, parent in zip(kinds, draft.parents, strict=True):
            above = 1.0 if parent == ROOT else found[parent]
            found.append(above * self._believed(kind))
        return found


class Throughput:
    """Tokens per second of those passes of a stream that verify guesses or nothing, by their estimated cost.

    Costs are counted in passes over a single token, so a machine that becomes slower does not distort the throughput.
    """

    def __init__(self) -> None:
        self._tokens = self._cost = 0.0

    def learn(self, tokens: int, new: int, curve: Cost) -> None:
        """Count the tokens that a pass over ``new`` tokens has yielded, including its own token."""
        self._tokens = KEPT_THROUGHPUT * self._tokens + tokens
        self._cost = KEPT_THROUGHPUT * self._cost + curve(new) / curve(1)

    def per_second(self, curve: Cost) -> float:
        """Return tokens per second; before any observation, one per pass over a single token."""
        return (self._tokens / self._cost if self._cost else 1.0) / curve(1)


def worth_verifying(reached: Sequence[float], tail: int, curve: Cost, throughput: float) -> list[int]:
    """Return the nodes of a draft, in order, that yield more than their time would elsewhere.

    Args:
        reached: (n,) probability of each node, from `Acceptance.reached`.
        tail: ids that the pass processes in any case, at least 1.
        curve: T(n) in seconds, as it counts for one request.
        throughput: tokens per second of other passes.
    """
    order = sorted(range(len(reached)), key=reached.__getitem__, reverse=True)
    gained = accumulate([reached[node] for node in order], initial=0.0)
    profits = [tokens - throughput * curve(tail + count) for count, tokens in enumerate(gained)]
    # The curve has steps, so a node may pay off only together with later ones.
    kept = max(range(len(profits)), key=profits.__getitem__)
    return sorted(order[:kept])
