"""Methods that draft with a small model, and methods that sample."""

from __future__ import annotations

from dataclasses import replace

from redraft.decoding.accept.biased import Biased, ByProvenance
from redraft.decoding.accept.small_model import Rejection, Rollback
from redraft.decoding.draft.previous import Nothing, PreviousOutput, Then
from redraft.decoding.draft.small_model import SmallModel
from redraft.decoding.method import Method, Option, Setup
from redraft.decoding.methods.registry import BETA, FLOOR
from redraft.decoding.sampling import Sampler
from redraft.decoding.types import Drafter, Provenance, Rule

FALLBACK = Option(
    "fallback", 0.6, 0.0, 1.0, "the small model drafts while its best probability is above this; 1 drafts nothing"
)
ROLLBACK = Option(
    "rollback", 2.0, 0.0, 100.0, "draft tokens are kept while -log of the target's probability is at most this"
)
WINDOW = Option("window", 10, 1, 10, "maximum tokens that the small model drafts at a time", whole=True)
TOP_P = Option(
    "top_p", 1.0, 0.0, 1.0, "with a temperature above 0, sample only from the most probable tokens with this total mass"
)
SEED = Option("seed", 0, 0, 999_999, "random seed, the same for every update", whole=True)
LAYERS = Option("layers", 1, 1, 999, "number of the model's first layers that draft", whole=True)


def _temperature(default: float) -> Option:
    return Option("temperature", default, 0.0, 2.0, "sampling temperature; 0 is greedy")


def _sampler(setup: Setup) -> Sampler:
    return Sampler(setup.number("temperature"), setup.number("top_p"), setup.whole("seed"))


def _bild(setup: Setup) -> tuple[Drafter, Rule]:
    sampler = _sampler(setup)
    drafter = SmallModel(sampler, setup.whole("window"), setup.end_tokens, setup.number("fallback"))
    return drafter, Rollback(setup.number("rollback"), sampler)


def _speculative_sampling(setup: Setup) -> tuple[Drafter, Rule]:
    sampler = _sampler(setup)
    return SmallModel(sampler, setup.whole("window"), setup.end_tokens), Rejection(sampler)


def _ssbd_bild(setup: Setup) -> tuple[Drafter, Rule]:
    greedy = Sampler()
    small = SmallModel(greedy, setup.whole("window"), setup.end_tokens, setup.number("fallback"))
    biased = Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens)
    rollback = Rollback(setup.number("rollback"), greedy)
    return Then(PreviousOutput(), small), ByProvenance({Provenance.PREVIOUS: biased}, rollback)


BILD = (FALLBACK, ROLLBACK, WINDOW, _temperature(0.0), TOP_P, SEED)

METHODS = (
    Method(
        "bild",
        "big little decoder: a small model drafts while it is confident, the large one rolls back improbable tokens",
        "BiLD, Algorithm 1; sampling: section 7.4",
        "small model, until unsure",
        "rollback",
        _bild,
        BILD,
        draft_model="small",
    ),
    Method(
        "bild-early-exit",
        "big little decoder whose small model is the target's first layers",
        "BiLD, section 4.4",
        "first layers, until unsure",
        "rollback",
        _bild,
        (LAYERS, *BILD),
        needs=frozenset({"early_exit"}),
        draft_model="layers",
    ),
    Method(
        "ssbd-bild",
        "SSBD, then a small model drafts from the first rejected token on, verified by rollback",
        "SSBD v2, Algorithm 1; BiLD, Algorithm 1",
        "previous output, then small model",
        "biased, then rollback",
        _ssbd_bild,
        (BETA, FLOOR, FALLBACK, ROLLBACK, WINDOW),
        draft_model="small",
    ),
    Method(
        "sampling",
        "re-translation from scratch with sampled tokens, one pass per token",
        "Leviathan et al. 2023, section 2.2 (standardised sampling)",
        "nothing",
        "rejection sampling",
        lambda setup: (Nothing(), Rejection(_sampler(setup))),
        (_temperature(1.0), TOP_P, SEED),
    ),
    Method(
        "speculative-sampling",
        "a small model drafts samples, accepted so that the target's distribution is preserved",
        "Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2",
        "small model, fixed window",
        "rejection sampling",
        _speculative_sampling,
        (replace(WINDOW, default=5), _temperature(1.0), TOP_P, SEED),
        draft_model="small",
    ),
)
