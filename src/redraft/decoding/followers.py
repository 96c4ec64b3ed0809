"""How probable an output is: which tokens of a partial one are shown, where it ends, and how candidates compare.

The end of a translation of half a sentence is a guess at what has not been said yet, and most of it is wrong.
*LocalAgreement-n* (Liu et al. 2020) shows a token once n outputs in a row, for different sources, agree on everything
up to it.  There it also fixes the token for good; here it decides about the display only.  The hidden rest stays in the
draft, and a shown token stands until the output changes there.  Showing what is certain while everything is translated
again is the idea of mask-k (Arivazhagan et al. 2020), with a k that follows the outputs, as in the dynamic masks of Yao
and Haffari (2020).  The agreement means something only if the outputs were free to differ, so `redraft` has no bias, or
a small one, towards what is hidden (`redraft.decoding.methods.ssbd`).

Waiting for a second output costs an update's time.  But the model knows what is a guess: it gives these tokens little
probability.  So one number follows a partial output while it is decoded, the joint probability q of the
tokens behind those on which the earlier outputs agree:

* a new token is shown *at first sight* (ours) while q is at least ``first_sight``; all others wait for another output;
* the output *stops* where q is below ``stop``: what follows would not be shown, would cost a pass for each token, and
  would be a poor draft.  A ``stop`` above ``first_sight`` would leave out what may be shown; by default, they are the
  same number.

An output that was stopped has no end token.  It is a draft like any other, and no failure.

Simultaneous translation has other rules for where a partial output ends: attention to the newest words (EDAtt and
AlignAtt, Papi et al. 2023; DOA, which reads attention too), the first hypothesis of a beam that is unreliable
(incremental blockwise beam search, Polák et al. 2023), agreement with the next output (LocalAgreement, Liu et al.
2020), or a maximum length.  This one needs neither attention nor calibration, and a pass that runs anyway computes it.

Candidates for a final text are compared by it (`redraft.captions.finals`).  Rules that keep a less probable token, such
as SSBD's bias, also give up something, which tells where a second look is worth a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from redraft.decoding.types import Draft, Likelihood, Rows, Verdict

#: Fewest new tokens of an output that is stopped.  With fewer, a model that is often in doubt would fall behind.
LEAST_NEW = 3


class Certainty:
    """Follows one output.

    Args:
        known: the tokens on which the earlier outputs agree.
        first_sight: least joint probability with which new tokens are shown, from 0 to 1; 1 shows none.
        stop: joint probability below which the output ends, from 0 (never) to 1.
        trust: that in the source's end, above 0: the first factor of the joint probability.

    Attributes:
        agreed: number of tokens that are those of ``known``.
        count: number of tokens, perhaps with the end token, that may be shown: those of ``known``, then those that are
            probable enough.
        certain: number of those that may be shown once the source's end is certain, at least ``count``.
    """

    def __init__(self, known: Sequence[int], first_sight: float = 1.0, stop: float = 0.0, trust: float = 1.0) -> None:
        self._known, self._first_sight, self._stop = known, _log(first_sight), _log(stop)
        self._shows = first_sight < 1
        self._length = self.agreed = self.count = self.certain = 0
        self._logprob = self._trust = _log(trust)

    def follow(self, draft: Draft, rows: Rows | None, verdict: Verdict) -> bool:
        """Take note of new tokens (`redraft.decoding.types.Follow`); return whether the output is to end there.

        Of those that were added without a pass, only tokens of ``known`` may be shown.
        """
        for node, token in verdict.added(draft):
            place = self._length
            if self._add(token) or rows is None:
                continue
            may_show = self._shows and self.certain == place
            if may_show or -math.inf < self._stop <= self._logprob:  # otherwise no probability is needed
                self._logprob += min(0.0, rows.logprob(node, token))
            if may_show and self._logprob - self._trust >= self._first_sight:
                self.certain = place + 1
                if self.count == place and self._logprob >= self._first_sight:
                    self.count = place + 1
        return self._logprob < self._stop and self._length - self.agreed >= LEAST_NEW

    def _add(self, token: int) -> bool:
        """Add a token to the output; return whether it is one of ``known``."""
        place, self._length = self._length, self._length + 1
        if self.agreed == place < len(self._known) and token == self._known[place]:
            self.agreed = self.count = self.certain = place + 1
        return self.agreed > place


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf


class Weighing:
    """How probable one output is, which never ends because of that."""

    def __init__(self) -> None:
        #: By token, with the end: log-probability, and how much the most probable one has more.
        self._tokens: list[tuple[float, float]] = []
        self._known = True

    def follow(self, draft: Draft, rows: Rows | None, verdict: Verdict) -> bool:
        """Take note of new tokens (`redraft.decoding.types.Follow`)."""
        if rows is None or draft.leaves_only:  # the rows before the leaves were not asked for
            self._known = False
        else:
            for node, token in verdict.added(draft):
                best, logprob = rows.argmax(node), min(0.0, rows.logprob(node, token))
                self._tokens.append((logprob, 0.0 if token == best else max(0.0, rows.logprob(node, best) - logprob)))
        return False

    def of(self, length: int, *, finished: bool) -> Likelihood | None:
        """Return the likelihood of an output of so many tokens; None if it is unknown."""
        tokens = self._tokens[: length + finished]
        if not self._known or len(tokens) < max(1, length):
            return None
        mean = math.fsum(logprob for logprob, _ in tokens) / len(tokens)
        first = next((place for place, (_, given_up) in enumerate(tokens) if given_up), length)
        return Likelihood(mean, math.fsum(given_up for _, given_up in tokens), first)
