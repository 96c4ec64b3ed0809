"""The built-in methods: each is a name, a drafter and an acceptance rule, with options."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from redraft.decoding.backend import Capability
from redraft.decoding.display import Display
from redraft.decoding.drafters.aligned import Aligned, PromptRows
from redraft.decoding.drafters.first_non_empty import FirstNonEmpty
from redraft.decoding.drafters.jacobi import STARTS, Jacobi
from redraft.decoding.drafters.lookup import Lookup
from redraft.decoding.drafters.nothing import Nothing
from redraft.decoding.drafters.previous import PreviousOutput
from redraft.decoding.drafters.small_model import SmallModel
from redraft.decoding.method import Choice, DraftModel, Method, Option, Setup
from redraft.decoding.methods.registry import BETA, FLOOR, register
from redraft.decoding.rules.agreement import Agreement
from redraft.decoding.rules.biased import Biased
from redraft.decoding.rules.by_provenance import ByProvenance
from redraft.decoding.rules.conditional import Conditional, among_best, entropy_threshold, fixed_threshold
from redraft.decoding.rules.everything import Everything
from redraft.decoding.rules.exact import Exact
from redraft.decoding.rules.rejection import Rejection
from redraft.decoding.rules.rollback import Rollback
from redraft.decoding.sampling import Sampler
from redraft.decoding.types import OF_PREVIOUS, Drafter, Provenance, Rule


def _biased(setup: Setup, hidden: float | None = None) -> Biased:
    return Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens, hidden)


STOPPING = Choice(
    "stopping",
    "paper",
    ("paper", "fast-forward"),
    "paper keeps a block once two iterations agree; fast-forward keeps every converged prefix at once",
)
START = Choice(
    "start", "pad", STARTS, "first guess: padding as in the paper, a copy of the source, or the previous output"
)
BLOCK = Option("block", 3, 1, 256, "positions solved together; 1 is autoregression", whole=True)
PARALLEL = Option("parallel", 256, 0, 4096, "output tokens after which decoding continues one by one", whole=True)


def _jacobi(setup: Setup, block: int = 0, parallel: int | None = None) -> tuple[Drafter, Rule]:
    rule = Agreement(setup.end_tokens) if setup.word("stopping") == "paper" else Exact()
    return Jacobi(setup.pad_token, block, parallel, setup.word("start")), rule


SHOWN = replace(BETA, default=0.4, help="bias towards shown words: 0 accepts only exact matches, 0.5 and above all")
HIDDEN = Option("hidden_beta", 0.1, 0.0, 1.0, "the same towards the hidden words of the previous translation")
STOP = Option(
    "stop", 0.3, 0.0, 1.0, "end a partial translation where the joint probability of its new words is below; 0 never"
)
#: What `redraft` shows: what two outputs agree on, and at first sight what is probable.
AGREEMENT = Display(agree=2, first_sight=0.4)

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


def _conditional(setup: Setup, trusted: Collection[Provenance]) -> Rule:
    tests = {
        "entropy": entropy_threshold(setup.number("alpha"), setup.number("beta")),
        "threshold": fixed_threshold(setup.number("threshold")),
        "top-k": among_best(setup.whole("top_k")),
    }
    test = tests.get(setup.word("verification"))
    guard = setup.word("end_guard") == "on"
    return Exact() if test is None else Conditional(test, trusted, setup.end_tokens, guard)


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
TOP_K = Option(
    "top_k",
    0,
    0,
    1000,
    "with a temperature above 0, sample only from so many most probable tokens; 0 for all",
    whole=True,
)
SEED = Option("seed", 0, 0, 999_999, "random seed, the same for every update", whole=True)
LAYERS = Option("layers", 1, 1, 999, "number of the model's first layers that draft", whole=True)


def _temperature(default: float) -> Option:
    return Option("temperature", default, 0.0, 2.0, "sampling temperature; 0 is greedy")


def _sampler(setup: Setup) -> Sampler:
    return Sampler(setup.number("temperature"), setup.number("top_p"), setup.whole("seed"), setup.whole("top_k"))


def _ssbd(setup: Setup) -> tuple[Drafter, Rule]:
    sampler = _sampler(setup) if setup.number("temperature") else None
    return PreviousOutput(), Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens, None, sampler)


def _bild(setup: Setup) -> tuple[Drafter, Rule]:
    sampler = _sampler(setup)
    ends = setup.word("end") == "small"
    drafter = SmallModel(sampler, setup.whole("window"), setup.end_tokens, setup.number("fallback"), ends=ends)
    return drafter, Rollback(setup.number("rollback"), sampler)


def _speculative_sampling(setup: Setup) -> tuple[Drafter, Rule]:
    sampler = _sampler(setup)
    return SmallModel(sampler, setup.whole("window"), setup.end_tokens), Rejection(sampler)


def _ssbd_bild(setup: Setup) -> tuple[Drafter, Rule]:
    greedy = Sampler()
    small = SmallModel(greedy, setup.whole("window"), setup.end_tokens, setup.number("fallback"))
    rollback = Rollback(setup.number("rollback"), greedy)
    return FirstNonEmpty(PreviousOutput(), small), ByProvenance(dict.fromkeys(OF_PREVIOUS, _biased(setup)), rollback)


SMALL_END = Choice(
    "end", "small", ("small", "verified"), "small: the small model may end the output; verified: the large one decides"
)
BILD = (FALLBACK, ROLLBACK, WINDOW, SMALL_END, _temperature(0.0), TOP_P, TOP_K, SEED)

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
        lambda _setup: (PreviousOutput(settled=True), Everything()),
    ),
    Method(
        "ssbd",
        "self-speculative biased decoding: verifies the previous translation in one pass, with a bias towards it",
        "SSBD v2, Algorithm 1, equations 1-3",
        "previous output",
        "biased",
        _ssbd,
        (BETA, FLOOR, _temperature(0.0), TOP_P, TOP_K, SEED),
        bias=BETA,
    ),
    Method(
        "jacobi",
        "guesses the whole sentence and refines it in parallel, each pass from the predictions of the last",
        "Parallel decoding, Algorithm 1 (PJ)",
        "last iteration, whole sentence",
        "exact, or agreement of two iterations",
        _jacobi,
        (STOPPING, START),
    ),
    Method(
        "gs-jacobi",
        "refines blocks of tokens in parallel, one block after another",
        "Parallel decoding, Algorithm 2 (PGJ)",
        "last iteration, by blocks",
        "exact, or agreement of two iterations",
        lambda setup: _jacobi(setup, setup.whole("block")),
        (BLOCK, STOPPING, START),
    ),
    Method(
        "hybrid-jacobi",
        "refines blocks in parallel up to a length, then decodes one token per pass",
        "Parallel decoding, Algorithm 3 (HGJ)",
        "last iteration, by blocks, then nothing",
        "exact, or agreement of two iterations",
        lambda setup: _jacobi(setup, setup.whole("block"), setup.whole("parallel")),
        (BLOCK, PARALLEL, STOPPING, START),
    ),
    Method(
        "bild",
        "big little decoder: a small model drafts while it is confident, the large one rolls back improbable tokens",
        "BiLD, Algorithm 1; sampling: section 7.4",
        "small model, until unsure",
        "rollback",
        _bild,
        BILD,
        draft_model=DraftModel.SMALL,
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
        draft_model=DraftModel.LAYERS,
        layers=LAYERS,
    ),
    Method(
        "ssbd-bild",
        "SSBD, then a small model drafts from the first rejected token on, verified by rollback",
        "SSBD v2, Algorithm 1; BiLD, Algorithm 1",
        "previous output, then small model",
        "biased, then rollback",
        _ssbd_bild,
        (BETA, FLOOR, FALLBACK, ROLLBACK, WINDOW),
        bias=BETA,
        draft_model=DraftModel.SMALL,
    ),
    Method(
        "sampling",
        "re-translation from scratch with sampled tokens, one pass per token",
        "Leviathan et al. 2023, section 2.2 (standardised sampling)",
        "nothing",
        "rejection sampling",
        lambda setup: (Nothing(), Rejection(_sampler(setup))),
        (_temperature(1.0), TOP_P, TOP_K, SEED),
    ),
    Method(
        "speculative-sampling",
        "a small model drafts samples, accepted so that the target's distribution is preserved",
        "Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2",
        "small model, fixed window",
        "rejection sampling",
        _speculative_sampling,
        (replace(WINDOW, default=5), _temperature(1.0), TOP_P, TOP_K, SEED),
        draft_model=DraftModel.SMALL,
    ),
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
            _conditional(setup, {Provenance.PROMPT}),
        ),
        (KEY, NGRAM, WIDTH, *VERIFICATION, END_GUARD),
        needs=frozenset({Capability.TREES, Capability.PROMPT_ROWS}),
    ),
    Method(
        "ssbd-pld",
        "SSBD, then prompt lookup from the first rejected token on",
        "SSBD v2, Algorithm 1; Saxena 2023",
        "previous output, then n-grams",
        "biased, then exact",
        lambda setup: (
            FirstNonEmpty(PreviousOutput(), _lookup(setup)),
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
        lambda setup: (PreviousOutput(), _conditional(setup, OF_PREVIOUS)),
        (
            replace(VERIFICATION[0], help=f"how the previous translation is {_HOW}"),
            *VERIFICATION[1:],
            replace(END_GUARD, default="on"),
        ),
    ),
    Method(
        "redraft",
        "the default: ssbd with a bias towards what the reader sees and a smaller one towards the rest; a partial "
        "translation stops where the model guesses, and what two translations agree on is shown",
        "ours; SSBD v2, Algorithm 1; Liu et al. 2020 (LocalAgreement)",
        "previous output",
        "biased",
        lambda setup: (PreviousOutput(), _biased(setup, setup.number(HIDDEN.name))),
        (SHOWN, HIDDEN, FLOOR, STOP),
        bias=SHOWN,
        stop=STOP,
        display=AGREEMENT,
    ),
)
for _method in METHODS:
    register(_method)
