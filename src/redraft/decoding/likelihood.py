"""How probable an output is, followed while it is decoded: the rows that decide about its tokens say so.

Candidates for a final text are compared by it (`redraft.captions.finals`).  Rules that keep a less probable token, such
as SSBD's bias, also give up something, which tells where a second look is worth a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from redraft.decoding.types import Draft, Likelihood, Rows, Verdict


class Weighing:
    """Follows one output; implements `redraft.decoding.types.Follower`.

    Attributes:
        stops: whether the output is to end: never.
    """

    stops = False

    def __init__(self) -> None:
        #: By token, with the end: log-probability, and how much the most probable one has more.
        self._tokens: list[tuple[float, float]] = []
        self._known = True

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Take note of the tokens that a pass has added to the output; the rows are those of the pass."""
        if draft.leaves_only and not draft.is_chain:  # the rows before them were not asked for
            self._known = False
            return
        for node, token in verdict.added(draft):
            best, logprob = rows.argmax(node), min(0.0, rows.logprob(node, token))
            self._tokens.append((logprob, 0.0 if token == best else max(0.0, rows.logprob(node, best) - logprob)))

    def keep(self, tokens: Sequence[int]) -> None:
        """Take note of tokens that were added without a pass: nothing is known of them."""
        self._known = False

    def of(self, length: int, *, finished: bool) -> Likelihood | None:
        """Return the likelihood of an output of so many tokens; None if it is unknown."""
        tokens = self._tokens[: length + finished]
        if not self._known or len(tokens) < max(1, length):
            return None
        mean = math.fsum(logprob for logprob, _ in tokens) / len(tokens)
        first = next((place for place, (_, given_up) in enumerate(tokens) if given_up), length)
        return Likelihood(mean, math.fsum(given_up for _, given_up in tokens), first)
