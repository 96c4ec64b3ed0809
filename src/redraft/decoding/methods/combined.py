"""Combinations of the papers: SSBD's draft before, or with the rule of, another paper's."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.drafters import SmallModel
from redraft.decoding.method import Method, Setup
from redraft.decoding.methods.aasd import END_GUARD, HOW, VERIFICATION, conditional
from redraft.decoding.methods.bild import FALLBACK, ROLLBACK, Rollback
from redraft.decoding.methods.lookup import LOOKUP, lookup
from redraft.decoding.methods.ssbd import BETA, FLOOR, Biased, PreviousOutput
from redraft.decoding.rules import WINDOW, Exact, Sampler
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


class InTurn(Drafter, Rule):
    """Proposes the first draft that is not empty, which is judged by the rule of its drafter.

    The empty draft falls to the last rule.  All drafters observe every pass, so they must handle drafts of each other.
    """

    def __init__(self, *parts: tuple[Drafter, Rule]) -> None:
        self._parts, self._rule = parts, parts[0][1]

    def drafting(self, context: Context) -> Asking[Draft]:
        """Return the draft, with the largest number of prompt rows that a drafter up to its own has asked for."""
        prompt_rows = 1
        for drafter, rule in self._parts:
            self._rule = rule
            draft = yield from drafter.drafting(context)
            prompt_rows = max(prompt_rows, draft.prompt_rows)
            if draft:
                break
        return replace(draft, prompt_rows=prompt_rows)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Pass the result on to all drafters."""
        for drafter, _ in self._parts:
            drafter.observe(draft, rows, verdict)

    def biases(self, draft: Draft) -> tuple[float, ...] | None:
        """Return the bias of the drafter's rule towards each token; None if it has none."""
        return self._rule.biases(draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the verdict of the drafter's rule."""
        return self._rule.judge(draft, rows)


def _after_ssbd(setup: Setup, drafter: Drafter, rule: Rule) -> tuple[Drafter, Rule]:
    both = InTurn((PreviousOutput(), Biased(setup["beta"], setup["floor"], setup.ends)), (drafter, rule))
    return both, both


def _ssbd_bild(setup: Setup) -> tuple[Drafter, Rule]:
    greedy = Sampler()
    small = SmallModel(greedy, setup["window"], setup.ends, setup["fallback"])
    return _after_ssbd(setup, small, Rollback(setup["rollback"], greedy))


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
        lambda setup: _after_ssbd(setup, lookup(setup), Exact()),
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
