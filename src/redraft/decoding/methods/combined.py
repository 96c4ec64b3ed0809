"""Combinations of the papers: SSBD's draft before, or with the rule of, another paper's.

The previous output is drafted in front of any drafter (`FirstNonEmpty`), and each kind of draft is judged by its own
rule (`ByProvenance`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from redraft.decoding.drafters import SmallModel
from redraft.decoding.method import Method, Setup
from redraft.decoding.methods.aasd import END_GUARD, HOW, VERIFICATION, conditional
from redraft.decoding.methods.bild import FALLBACK, ROLLBACK, Rollback
from redraft.decoding.methods.lookup import LOOKUP, lookup
from redraft.decoding.methods.ssbd import BETA, FLOOR, Biased, PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.sampling import WINDOW, Sampler
from redraft.decoding.types import (
    OF_PREVIOUS,
    Asking,
    Context,
    Draft,
    Drafter,
    Rows,
    Rule,
    Verdict,
)


class FirstNonEmpty(Drafter):
    """Proposes the draft of ``first``, or that of ``second`` if it is empty.

    Both observe every pass, so they must handle drafts of each other.
    """

    def __init__(self, first: Drafter, second: Drafter) -> None:
        self._first, self._second = first, second

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the first non-empty draft, with the larger of both numbers of prompt rows."""
        draft = yield from self._first.propose(context)
        if len(draft):
            return draft
        other = yield from self._second.propose(context)
        return replace(other, prompt_rows=max(draft.prompt_rows, other.prompt_rows))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Pass the result on to both."""
        self._first.observe(draft, rows, verdict)
        self._second.observe(draft, rows, verdict)


class ByProvenance(Rule):
    """Judges a draft by the rule for the provenance of its first token.

    Args:
        rules: the rules by provenance.
        otherwise: the rule for all other drafts, including the empty one.
    """

    def __init__(self, rules: Mapping[str, Rule], otherwise: Rule) -> None:
        self._rules, self._otherwise = rules, otherwise

    def biases(self, draft: Draft) -> tuple[float, ...] | None:
        """Return the bias of the rule for this draft towards each token; None if it has none."""
        return self._rule(draft).biases(draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the rule for this draft."""
        return self._rule(draft).judge(draft, rows)

    def _rule(self, draft: Draft) -> Rule:
        return self._rules.get(draft.provenance[0], self._otherwise) if len(draft) else self._otherwise


def _biased(setup: Setup) -> Biased:
    return Biased(setup["beta"], setup["floor"], setup.ends)


def _ssbd_bild(setup: Setup) -> tuple[Drafter, Rule]:
    greedy = Sampler()
    small = SmallModel(greedy, setup["window"], setup.ends, setup["fallback"])
    rollback = Rollback(setup["rollback"], greedy)
    return FirstNonEmpty(PreviousOutput(), small), ByProvenance(dict.fromkeys(OF_PREVIOUS, _biased(setup)), rollback)


METHODS = (
    Method(
        "ssbd-bild",
        "SSBD, then a small model drafts from the first rejected token on, verified by rollback",
        "SSBD v2, Algorithm 1; BiLD, Algorithm 1",
        "previous output, then small model",
        "biased, then rollback",
        _ssbd_bild,
        (BETA, FLOOR, FALLBACK, ROLLBACK, WINDOW),
        bias=BETA,
        small_model=True,
    ),
    Method(
        "ssbd-pld",
        "SSBD, then prompt lookup from the first rejected token on",
        "SSBD v2, Algorithm 1; Saxena 2023",
        "previous output, then n-grams",
        "biased, then exact",
        lambda setup: (
            FirstNonEmpty(PreviousOutput(), lookup(setup)),
            ByProvenance(dict.fromkeys(OF_PREVIOUS, _biased(setup)), Exact()),
        ),
        (BETA, FLOOR, *LOOKUP),
        bias=BETA,
    ),
    Method(
        "ssbd-aasd",
        "verifies the previous translation by AASD's entropy-adaptive threshold instead of the bias",
        "SSBD v2, section 3.2; AASD, equations 3-6",
        "previous output",
        "conditional",
        lambda setup: (PreviousOutput(), conditional(setup, OF_PREVIOUS)),
        (
            replace(VERIFICATION[0], help=f"how the previous translation is {HOW}"),
            *VERIFICATION[1:],
            replace(END_GUARD, default="on"),
        ),
    ),
)
