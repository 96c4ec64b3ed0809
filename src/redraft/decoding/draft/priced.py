"""How much of a draft is worth its price.

A pass over n new tokens takes T(n) seconds and yields the tokens accepted and one more.  A guess that is accepted saves
one of the passes that give the output's tokens one by one, or with guesses.  So of a draft tree those nodes are kept
for which

    sum of the probabilities that a node is reached and accepted  -  pace * (T(tail + nodes) - T(tail))

is greatest, with the pace in tokens a second of these passes so far: the draft that is best by this measure makes the
pace itself greatest (Dinkelbach 1967).  The pass that verifies the previous output does not count.  It may keep thirty
tokens where the others keep one or two, so time would seem to be worth many tokens, and guesses that pay be left out.
Nor is the previous output cut by its price: what is cut of it and would have been kept costs a pass.

Nodes are added in the order of their probabilities, and of all these drafts the best is taken.  A node is never more
probable than its parent, so what is kept is a tree.  Where a pass over many tokens costs no more than one over a single
token, all of the draft is kept; where T is steep, only what is nearly sure.

How probable it is that a node is accepted when its parent was is learnt from what came of earlier drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.decoding.types import ROOT, Draft, Provenance, Verdict

#: Positions of a draft from here on are told apart no further.
DEEPEST = 6
#: What is believed before anything was seen: of the previous output that most of it stays.
PRIOR, PRIOR_OF_PREVIOUS = 0.5, 0.95
#: Experience begins with so many tokens of it.
PRIOR_TOKENS = 2.0
#: Older experience counts less: by so much with every token that is tried.
KEPT = 0.995
#: The same for the pace, with every pass.
KEPT_PACE = 0.999


class Kind(NamedTuple):
    """What is known beforehand of how sure a draft token is.

    Attributes:
        source: where it comes from.
        depth: how far into the draft it stands, in steps of its source's choice, at most `DEEPEST`.
        rank: how many likelier guesses there are from the same source.
        known: whatever else its source can tell, such as how long a context vouches for it.
    """

    source: Provenance
    depth: int
    rank: int = 0
    known: int = 0


@dataclass(slots=True)
class _Rate:
    accepted: float
    tried: float


class Acceptance:
    """How often draft tokens of each kind were accepted after an accepted parent; lasts as long as a stream."""

    def __init__(self) -> None:
        self._rates: dict[Kind, _Rate] = {}

    def learn(self, draft: Draft, kinds: Sequence[Kind], verdict: Verdict) -> None:
        """Count the nodes that the target has decided about: the children of the root and of accepted nodes."""
        accepted = {ROOT, *verdict.accepted}
        for node, (parent, kind) in enumerate(zip(draft.parents, kinds, strict=True)):
            if parent in accepted:
                rate = self._rates.get(kind) or _Rate(PRIOR_TOKENS * self._believed(kind), PRIOR_TOKENS)
                rate.accepted = KEPT * rate.accepted + (node in accepted)
                rate.tried = KEPT * rate.tried + 1
                self._rates[kind] = rate

    def _believed(self, kind: Kind) -> float:
        """The rate of a kind.  Of a depth that was never tried it is that of the depth above it."""
        while (rate := self._rates.get(kind)) is None:
            if not kind.depth:
                return PRIOR_OF_PREVIOUS if kind.source is Provenance.PREVIOUS else PRIOR
            kind = Kind(kind.source, kind.depth - 1, kind.rank, kind.known)
        return rate.accepted / rate.tried

    def reached(self, draft: Draft, kinds: Sequence[Kind]) -> list[float]:
        """(n,) the probability of each node that it is accepted, and all above it."""
        found: list[float] = []
        for kind, parent in zip(kinds, draft.parents, strict=True):
            above = 1.0 if parent == ROOT else found[parent]
            found.append(above * self._believed(kind))
        return found


class Pace:
    """Tokens a second over those passes of a stream that verify guesses or nothing, by what they should cost."""

    def __init__(self) -> None:
        self._tokens = self._seconds = 0.0

    def learn(self, tokens: int, seconds: float) -> None:
        """Count what a pass has yielded, its own token included."""
        self._tokens, self._seconds = KEPT_PACE * self._tokens + tokens, KEPT_PACE * self._seconds + seconds

    def rate(self, curve: Callable[[int], float]) -> float:
        """Tokens a second; before anything was counted, one for each pass over a single token."""
        return self._tokens / self._seconds if self._seconds else 1 / curve(1)


def worth_its_price(reached: Sequence[float], tail: int, curve: Callable[[int], float], pace: float) -> list[int]:
    """The nodes of a draft, in order, that yield more than their time would elsewhere.

    Args:
        reached: (n,) probability of each node, as of `Acceptance.reached`.
        tail: ids that the pass has to run over in any case, at least 1.
        curve: T(n) in seconds.
        pace: tokens a second that other passes yield.
    """
    order = sorted(range(len(reached)), key=reached.__getitem__, reverse=True)
    gained, best, kept, least = 0.0, 0.0, 0, curve(tail)
    for count, node in enumerate(order, 1):
        gained += reached[node]
        profit = gained - pace * (curve(tail + count) - least)
        # The curve has steps, so a node may pay only together with those after it.
        if profit > best:
            best, kept = profit, count
    return sorted(order[:kept])
