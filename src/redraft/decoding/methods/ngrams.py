"""Methods that draft n-grams of prompt and output: prompt lookup and AASD."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.accept.biased import Biased, ByProvenance
from redraft.decoding.accept.conditional import Conditional, among_best, entropy_threshold, fixed_threshold
from redraft.decoding.accept.exact import Exact
from redraft.decoding.draft.aligned import Aligned, PromptRows
from redraft.decoding.draft.lookup import Lookup
from redraft.decoding.draft.previous import PreviousOutput, Then
from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.methods.registry import BETA, FLOOR
from redraft.decoding.types import Drafter, Provenance, Rule

KEY = Option("key", 6, 1, 16, "maximum number of last tokens to look an n-gram up by", whole=True)
NGRAM = Option("ngram", 6, 1, 32, "maximum tokens of an n-gram", whole=True)
WIDTH = Option("width", 2, 0, 2, "siblings of a token by alignment sampling; 0 turns it off", whole=True)
END_GUARD = Choice(
    "end_guard", "off", ("off", "on"), "on rejects tokens that are less probable than the end token (CASD)"
)
_HOW = "verified: by the threshold alpha * entropy + beta, a fixed threshold, their rank, or exactly"
VERIFICATION = (
    Choice(
        "verification",
        "entropy",
        ("entropy", "threshold", "top-k", "exact"),
        f"how tokens from the prompt are {_HOW}",
    ),
    Option("alpha", 0.1, 0.0, 10.0, "with verification=entropy: growth of the threshold with the entropy, in nats"),
    Option("beta", 0.1, 0.0, 1.0, "with verification=entropy: threshold at entropy 0"),
    Option("threshold", 0.1, 0.0, 1.0, "with verification=threshold: the threshold"),
    Option("top_k", 5, 1, 1000, "with verification=top-k: lowest rank that is kept", whole=True),
)
LOOKUP = (replace(KEY, default=3), replace(NGRAM, default=10))


def _lookup(setup: Setup) -> Drafter:
    return Lookup(setup.whole("key"), setup.whole("ngram"), setup.end_tokens)


def _conditional(setup: Setup, trusted: Provenance) -> Rule:
    tests = {
        "entropy": entropy_threshold(setup.number("alpha"), setup.number("beta")),
        "threshold": fixed_threshold(setup.number("threshold")),
        "top-k": among_best(setup.whole("top_k")),
    }
    test = tests.get(setup.word("verification"))
    guard = setup.word("end_guard") == "on"
    return Exact() if test is None else Conditional(test, {trusted}, setup.end_tokens, guard)


METHODS = (
    Method(
        "pld",
        "prompt lookup: drafts what followed the last tokens at an earlier place in prompt or output",
        "Saxena 2023 (prompt lookup decoding); LLMA, Yang et al. 2023",
        "n-grams",
        "exact",
        lambda setup: (_lookup(setup), Exact()),
        LOOKUP,
    ),
    Method(
        "aasd",
        "drafts a tree of n-grams with the model's alternatives; accepts tokens from the prompt leniently",
        "AASD, Algorithm 1, equations 2-6",
        "n-grams, alignment sampling",
        "conditional",
        lambda setup: (
            Aligned(
                setup.whole("key"),
                setup.whole("ngram"),
                setup.whole("width"),
                setup.end_tokens,
                rows=setup.recall(PromptRows),
            ),
            _conditional(setup, Provenance.PROMPT),
        ),
        (KEY, NGRAM, WIDTH, *VERIFICATION, END_GUARD),
        needs=frozenset({"trees", "prompt_rows"}),
    ),
    Method(
        "ssbd-pld",
        "SSBD, then prompt lookup from the first rejected token on",
        "SSBD v2, Algorithm 1; Saxena 2023",
        "previous output, then n-grams",
        "biased, then exact",
        lambda setup: (
            Then(PreviousOutput(), _lookup(setup)),
            ByProvenance(
                {Provenance.PREVIOUS: Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens)}, Exact()
            ),
        ),
        (BETA, FLOOR, *LOOKUP),
    ),
    Method(
        "ssbd-aasd",
        "verifies the previous translation by AASD's entropy-adaptive threshold instead of the bias",
        "SSBD v2, section 3.2; AASD, equations 3-6",
        "previous output",
        "conditional",
        lambda setup: (PreviousOutput(), _conditional(setup, Provenance.PREVIOUS)),
        (
            replace(VERIFICATION[0], help=f"how the previous translation is {_HOW}"),
            *VERIFICATION[1:],
            replace(END_GUARD, default="on"),
        ),
    ),
)
