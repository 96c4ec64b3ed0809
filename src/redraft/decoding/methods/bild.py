"""Speculative Decoding with Big Little Decoder (BiLD).

A small model drafts while it is confident (`redraft.decoding.drafters`: the fallback policy, section 3.3;
Algorithm 1, lines 3-6), and the large model rolls back what it finds improbable (`Rollback`: the rollback policy,
section 3.4; Algorithm 1, lines 9-16).  The small model is a second model, or the target's first layers (early exit,
section 4.4).  Section 7.4 samples.  In the experiment of section 3.1, the large model only replaces tokens (Figure 2).
"""

from __future__ import annotations

from redraft.decoding.backend import Capability
from redraft.decoding.drafters import SmallModel
from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.rules import WINDOW, Sampler, sampler, sampling, walk
from redraft.decoding.types import Draft, Drafter, Rows, Rule, Verdict


class Rollback(Rule):
    """Rollback: the large model keeps draft tokens that it finds probable enough (BiLD, section 3.4, equation 3).

    As in Algorithm 1, lines 9-16, draft tokens are accepted while d <= alpha_RB, where d is the cross-entropy between
    the large model's distribution and the small model's hard label (section 4.1), d = -log p_L(draft token).  The first
    token beyond that is dropped with everything after it, and replaced by the large model's own token, which also
    follows a fully accepted draft.  A drafted end token is verified like any other.

    If both models agree on a token, the authors' code keeps it however improbable it is, since it would be replaced by
    itself.  Section 3.4 does not say so; ``agreeing`` turns it on.

    Args:
        threshold: alpha_RB in nats, at least 0.  0 accepts only tokens of probability 1; 2 those of at least 0.135.
        agreeing: whether to keep every token that is the large model's most probable one.
        sampler: draws the large model's own token (section 7.4); the distance still uses the model's full distribution
            rather than the nucleus.
        adds: whether the large model's own token follows accepted ones; otherwise it only replaces the first token of a
            draft (section 3.1).
    """

    def __init__(self, threshold: float, sampler: Sampler, *, agreeing: bool = False, adds: bool = True) -> None:
        self._threshold, self._sampler, self._agreeing, self._adds = threshold, sampler, agreeing, adds

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept a path, of siblings the most probable one, and the large model's token after it."""

        def choose(node: int, children: list[int]) -> int | None:
            logs = {child: rows.logprob(node, draft.tokens[child]) for child in children}
            best = max(children, key=logs.__getitem__)
            agrees = self._agreeing and draft.tokens[best] == rows.argmax(node)
            return best if agrees or -logs[best] <= self._threshold else None

        verdict = walk(draft, rows, choose, self._sampler)
        return Verdict(verdict.accepted, None) if verdict.accepted and not self._adds else verdict


FALLBACK = Option(
    "fallback", 0.6, 0.0, 1.0, "the small model drafts while its best probability is above this; 1 drafts nothing"
)
ROLLBACK = Option(
    "rollback",
    2.0,
    0.0,
    100.0,
    "draft tokens are kept while -log of the target's probability is at most this; the authors' code has 5",
)
AGREEING = Choice(
    "agreeing",
    "checked",
    ("checked", "kept"),
    "tokens on which both models agree are checked like others, or kept as in the authors' code",
)
LAYERS = Option("layers", 1, 1, 999, "number of the model's first layers that draft", whole=True)
SMALL_END = Choice(
    "end", "small", ("small", "verified"), "small: the small model may end the output; verified: the large one decides"
)
CONFIDENCE = Choice(
    "confidence",
    "probability",
    ("probability", "margin"),
    "what fallback compares: the small model's best probability, or its lead over the second (CALM's softmax response)",
)
BILD: tuple[Option | Choice, ...] = (FALLBACK, CONFIDENCE, ROLLBACK, AGREEING, WINDOW, SMALL_END, *sampling(0.0))


def _bild(setup: Setup) -> tuple[Drafter, Rule]:
    drawing = sampler(setup)
    settling = setup.end_tokens if setup["end"] == "small" else frozenset()
    margin = setup["confidence"] == "margin"
    drafter = SmallModel(drawing, setup["window"], setup.ends, setup["fallback"], settling, margin=margin)
    return drafter, Rollback(setup["rollback"], drawing, agreeing=setup["agreeing"] == "kept")


def _replacement(setup: Setup) -> tuple[Drafter, Rule]:
    """Return a small model that writes every token, and a large one that replaces what it finds improbable.

    Both run for every token.  This saves nothing: it shows how few replacements the large model's quality needs.
    """
    greedy = Sampler()
    return SmallModel(greedy, 1, setup.ends), Rollback(setup["rollback"], greedy, adds=False)


METHODS = (
    Method(
        "bild",
        "big little decoder: a small model drafts while it is confident, the large one rolls back improbable tokens",
        "BiLD, Algorithm 1; sampling: section 7.4",
        "small model, until unsure",
        "rollback",
        _bild,
        BILD,
        small_model=True,
    ),
    Method(
        "bild-early-exit",
        "big little decoder whose small model is the target's first layers",
        "BiLD, section 4.4",
        "first layers, until unsure",
        "rollback",
        _bild,
        (LAYERS, *BILD),
        needs=frozenset({Capability.EARLY_EXIT}),
    ),
    Method(
        "bild-replacement",
        "the small model writes, the large one replaces improbable tokens one by one: shows how few need it",
        "BiLD, section 3.1, Figure 2",
        "small model, one token",
        "replacement",
        _replacement,
        (ROLLBACK,),
        small_model=True,
    ),
)
