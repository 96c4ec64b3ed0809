"""The built-in methods: each is a name, a drafter and an acceptance rule, with options."""

from __future__ import annotations

from redraft.decoding.accept.agreement import Agreement
from redraft.decoding.accept.biased import Biased
from redraft.decoding.accept.exact import Everything, Exact
from redraft.decoding.draft.jacobi import STARTS, Jacobi
from redraft.decoding.draft.previous import Nothing, PreviousOutput
from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.methods import guesses, ngrams, small_models
from redraft.decoding.methods.registry import BETA, FLOOR, register
from redraft.decoding.types import Drafter, Rule

register(
    Method(
        "ar",
        "re-translation from scratch, one pass per token",
        "SSBD v2, equation 1 (RT)",
        "nothing",
        "exact",
        lambda _setup: (Nothing(), Exact()),
    )
)
register(
    Method(
        "cd",
        "continuous decoding: keeps the previous translation as it is and only continues it",
        "SSBD v2, section 4.2 (CD)",
        "previous output",
        "everything",
        lambda _setup: (PreviousOutput(), Everything()),
    )
)
register(
    Method(
        "ssbd",
        "self-speculative biased decoding: verifies the previous translation in one pass, with a bias towards it",
        "SSBD v2, Algorithm 1, equations 1-3",
        "previous output",
        "biased",
        lambda setup: (
            PreviousOutput(),
            Biased(setup.number("beta"), setup.number("floor"), setup.end_tokens),
        ),
        (BETA, FLOOR),
    )
)


STOPPING = Choice(
    "stopping",
    "fast-forward",
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


register(
    Method(
        "jacobi",
        "guesses the whole sentence and refines it in parallel, each pass from the predictions of the last",
        "Parallel decoding, Algorithm 1 (PJ)",
        "last iteration, whole sentence",
        "exact, or agreement of two iterations",
        _jacobi,
        (STOPPING, START),
    )
)
register(
    Method(
        "gs-jacobi",
        "refines blocks of tokens in parallel, one block after another",
        "Parallel decoding, Algorithm 2 (PGJ)",
        "last iteration, by blocks",
        "exact, or agreement of two iterations",
        lambda setup: _jacobi(setup, setup.whole("block")),
        (BLOCK, STOPPING, START),
    )
)
register(
    Method(
        "hybrid-jacobi",
        "refines blocks in parallel up to a length, then decodes one token per pass",
        "Parallel decoding, Algorithm 3 (HGJ)",
        "last iteration, by blocks, then nothing",
        "exact, or agreement of two iterations",
        lambda setup: _jacobi(setup, setup.whole("block"), setup.whole("parallel")),
        (BLOCK, PARALLEL, STOPPING, START),
    )
)

for _method in (*small_models.METHODS, *ngrams.METHODS, *guesses.METHODS):
    register(_method)
