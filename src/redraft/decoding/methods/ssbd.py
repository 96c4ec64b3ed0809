"""Self-Speculative Biased Decoding (SSBD; v1 *for Faster Live Translation*, v2 *for Faster Re-translation*).

The paper compares three methods: re-translation from scratch (RT, here `ar`; equation 1), continuous decoding (CD, here
`cd`; section 4.2), and SSBD (Algorithm 1), which drafts the previous output (`PreviousOutput`) and accepts its tokens
with a bias (`Biased`).

**Biased acceptance** (SSBD v2, section 3.3, equation 3; v1, equations 5 and 6; Algorithm 1, lines 5-11).  The paper
mixes the target's distribution with the draft token, P' = (1 - beta) P + beta delta(draft), and accepts the draft token
if it is the argmax of P'.  That is equivalent to

    p_max - p_draft <= beta / (1 - beta)

which bounds a difference, not a ratio.  From beta = 0.5 the right side is at least 1, and the rule is continuous
decoding.

**Bias where it is seen** (ours).  The paper shows its whole output, so it has one beta.  If the end of an output is
hidden, a bias towards the end calms nothing that a reader sees, but keeps the errors of a guess, and makes two outputs
agree that would not agree by themselves (`redraft.decoding.followers`).  So the hidden tokens of the previous output
have a beta of their own.  With the same beta for both, the rule is SSBD's; with `hidden` 0 and a beta of 0.5, it
continues what is shown greedily, as LocalAgreement does with a forced prefix (Liu et al. 2020; Polák et al. 2022).
Arivazhagan et al. (2020) introduced the bias for re-translation with beam search, with one strength for all tokens.

There are two departures from the paper, each a setting:

* ``floor`` (default 0): the bias accepts no token of lower probability.  At beta = 0.2 *any* token passes if p_max <=
  0.25; a small floor prevents that.
* ``end`` (default model): below beta = 0.5 the end of the output is the target's own decision: the bias neither accepts
  a drafted end token that is not the argmax nor overrides an end token that is.  With ``end=biased``, as in the paper,
  the bias decides on the end as on any other token.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from redraft.decoding.drafters import Nothing
from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.rules import Exact, Sampler, argmax_child, sampler, sampling, walk
from redraft.decoding.types import (
    OF_PREVIOUS,
    Context,
    Draft,
    Drafter,
    Provenance,
    Rows,
    Rule,
    Verdict,
)

BETA = Option(
    "beta",
    0.2,
    0.0,
    1.0,
    "bias towards the previous translation: 0 accepts only exact matches, 0.5 and above everything",
)
END = Choice(
    "end",
    "model",
    ("model", "biased"),
    "below a beta of 0.5, model: the model alone decides where the output ends; biased: the bias too, as in the paper",
)
FLOOR = Option("floor", 0.0, 0.0, 1.0, "lowest probability of a token that the bias keeps; 0 as in the paper")


class PreviousOutput(Drafter):
    """Proposes the whole previous output for the first pass, then nothing (SSBD v2, section 3.2; Algorithm 1, line 1).

    Outputs do not include the end token, so a finished translation can be continued for a longer source.

    Args:
        settled: whether it is kept without a look, as in continuous decoding (CD).
    """

    def __init__(self, *, settled: bool = False) -> None:
        self._settled = settled

    def propose(self, context: Context) -> Draft:
        """Return the previous output; after the first pass, the empty draft."""
        if context.output:
            return Draft()
        return replace(Draft.previous(context.previous, context.shown), settled=self._settled)


#: Bias from which on every token is kept.
KEEPS_ALL = 0.5


@dataclass
class Biased(Rule):
    """Accepts tokens of the previous output that are nearly as probable as the target's best, and all others exactly.

    So guesses behind the previous output change nothing but the number of passes.

    Attributes:
        beta: bias towards shown tokens, in [0, 1]; 0 is exact acceptance, 0.2 the paper's choice.
        floor: minimum probability of a token accepted by the bias, in [0, 1].
        end_tokens: ids that end an output, on which the target alone decides; none for the paper's rule.
        hidden: bias towards hidden tokens, in [0, 1]; None for ``beta``.
        sampler: draws the token after the accepted ones (F_decode in equations 1 and 2); None takes the most probable.
    """

    beta: float
    floor: float = 0.0
    end_tokens: frozenset[int] = frozenset()
    hidden: float | None = None
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        hidden = self.beta if self.hidden is None else self.hidden
        self._betas = {Provenance.SHOWN: self.beta, Provenance.PREVIOUS: hidden}

    def biases(self, draft: Draft) -> tuple[float, ...]:
        """Return the bias towards each draft token."""
        return tuple([self._betas.get(provenance, 0.0) for provenance in draft.provenance])

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the longest path of tokens that the biased target prefers."""
        return walk(draft, rows, partial(self._choose, draft, rows), self.sampler)

    def _choose(self, draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
        """Return the previous output's token if its bias keeps it; among guesses, the target's own token."""
        first = children[0]
        if draft.provenance[first] not in OF_PREVIOUS:
            return argmax_child(draft, rows, node, children)
        return first if self._keeps(rows, node, draft.tokens[first], self._betas[draft.provenance[first]]) else None

    def _keeps(self, rows: Rows, node: int, drafted: int, beta: float) -> bool:
        """Whether a token of the previous output may follow ``node``."""
        if beta >= KEEPS_ALL and not self.floor:
            return True
        best = rows.argmax(node)
        if drafted == best:
            return True
        # An exact rule must not accept ties of equal probability, hence the test for a bias of 0.
        if not beta or best in self.end_tokens or drafted in self.end_tokens:
            return False
        probability = math.exp(rows.logprob(node, drafted))
        if probability < self.floor:
            return False
        return beta >= KEEPS_ALL or math.exp(rows.logprob(node, best)) - probability <= beta / (1 - beta)


def _ssbd(setup: Setup) -> tuple[Drafter, Rule]:
    drawing = sampler(setup) if setup["temperature"] else None
    ends = setup.ends if setup["end"] == "model" else frozenset[int]()
    return PreviousOutput(), Biased(setup["beta"], setup["floor"], ends, None, drawing)


METHODS = (
    Method(
        "ar",
        "re-translation from scratch, one pass per token",
        "SSBD v2, equation 1 (RT)",
        "nothing",
        "exact",
        lambda _setup: (Nothing(), Exact()),
    ),
    Method(
        "cd",
        "continuous decoding: keeps the previous translation as it is and only continues it",
        "SSBD v2, section 4.2 (CD)",
        "previous output, as it is",
        "everything",
        lambda _setup: (PreviousOutput(settled=True), Biased(1.0)),
    ),
    Method(
        "ssbd",
        "self-speculative biased decoding: verifies the previous translation in one pass, with a bias towards it",
        "SSBD v2, Algorithm 1, equations 1-3",
        "previous output",
        "biased",
        _ssbd,
        (BETA, FLOOR, END, *sampling(0.0)),
        bias=BETA,
    ),
)
