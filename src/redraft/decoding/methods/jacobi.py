"""Jacobi, Gauss-Seidel-Jacobi and hybrid decoding (Santilli et al. 2023, Algorithms 1-3).

The paper solves y_i = argmax p(y_i | y_<i, x) for a block of positions at once (equations 3 and 4): each iteration runs
the model on the current guess, and its predictions are the next guess.  Here the guess is the draft, the pass that
scores it is the iteration, and its rows are the next guess.  The acceptance rule determines the stopping condition:
`Agreement` is the paper's (equation 5); `redraft.decoding.rules.Exact` accepts every converged prefix at once
("fast-forward") and lets the block slide.

A block of b positions needs b - 1 draft tokens, since the pass also predicts the position after its last input.

The paper assumes that the true length of the translation is known (section 4.1).  Here a whole sentence is a block of
estimated length, and another block follows if that was too short.

**The stopping condition** (`Agreement`): two successive iterations agree (equation 5); then the whole block is accepted
(Algorithms 1-3), even if a prefix had converged before.  A pass also predicts the position after its last guess, which
needs no second look: once the guesses agree, it follows from them.  So b - 1 positions of a block of b are compared, as
in the authors' code.

The number of iterations is at most the length of the block (loop in line 3 of Algorithm 1; Proposition 1): after k
iterations, the first k positions equal greedy decoding.  These stay in the cache, as in the authors' code: each
iteration keeps one position of a block that has not converged, and the next one leaves it out.  Positions after an end
token are ignored.
"""

from __future__ import annotations

from redraft.decoding.method import Choice, Method, Option, Setup
from redraft.decoding.rules import Exact
from redraft.decoding.types import ROOT, Context, Draft, Drafter, Provenance, Rows, Rule, Verdict, common_prefix

#: Initial guesses of a position (INITT in Algorithm 1; the paper uses only "pad").
STARTS = ("pad", "source", "previous")


class Jacobi(Drafter):
    """Proposes the predictions of the last iteration.

    Args:
        pad: id of the paper's initial guess.
        block: positions solved together (b), at least 1 (autoregressive); 0 solves the whole sentence.
        parallel: output tokens after which decoding becomes autoregressive (h in Algorithm 3); None for never.  A block
            that begins before them is solved to its end.
        slides: whether a block moves on with every token, and does not end where it was to end.
        start: one of `STARTS`.  Positions beyond the source or the previous output start as ``pad``.
    """

    def __init__(
        self, pad: int, block: int, parallel: int | None = None, start: str = "pad", *, slides: bool = False
    ) -> None:
        self._pad, self._block, self._parallel, self._start = pad, block, parallel, start
        self._slides = slides
        self._guess: list[int] = []

    def propose(self, context: Context) -> Draft:
        """Return the guess for the positions after the output, up to the block's length."""
        done = len(context.output)
        length = self._block or estimated_length(context)
        within = 0 if self._slides and self._block else done % length
        if self._parallel is not None and done - within >= self._parallel:
            return Draft()
        wanted = length - within - 1
        copied = {"pad": (), "source": context.prompt.source_ids, "previous": context.previous}[self._start]
        for position in range(done + len(self._guess), done + wanted):
            self._guess.append(copied[position] if position < len(copied) else self._pad)
        return Draft.chain(self._guess[:wanted], Provenance.ITERATION)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Do one iteration (Algorithm 1, line 5): take the pass's predictions for the positions that are still open."""
        settled = len(verdict.accepted) + (verdict.token is not None)
        self._guess = [rows.argmax(node) for node in range(ROOT + settled, len(draft))]


def estimated_length(context: Context) -> int:
    """Return the estimated length of a sentence: somewhat more than the previous output or, without one, the source."""
    if context.previous:
        return len(context.previous) + 8
    source = context.prompt.source_ids or context.prompt.encoder or context.prompt.ids
    return len(source) + len(source) // 2 + 4


class Agreement(Rule):
    """Accepts a block of a chain once it has stopped changing."""

    def __init__(self, end_tokens: frozenset[int]) -> None:
        self._end_tokens = end_tokens

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the block up to its end token; while it still changes, its first position, which is final."""
        new = [rows.argmax(node) for node in range(ROOT, len(draft))]
        last = next((place for place, token in enumerate(new) if token in self._end_tokens), len(draft))
        agreed = common_prefix(draft.tokens, new)
        kept = last if agreed >= last else 0
        return Verdict(tuple(range(kept)), new[kept])


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


def _method(setup: Setup, block: int = 0, parallel: int | None = None) -> tuple[Drafter, Rule]:
    slides = setup["stopping"] == "fast-forward"
    rule = Exact() if slides else Agreement(setup.ends)
    return Jacobi(setup.pad_token, block, parallel, setup["start"], slides=slides), rule


METHODS = (
    Method(
        "jacobi",
        "guesses the whole sentence and refines it in parallel, each pass from the predictions of the last",
        "Parallel decoding, Algorithm 1 (PJ)",
        "last iteration, whole sentence",
        "exact, or agreement of two iterations",
        _method,
        (STOPPING, START),
    ),
    Method(
        "gs-jacobi",
        "refines blocks of tokens in parallel, one block after another",
        "Parallel decoding, Algorithm 2 (PGJ)",
        "last iteration, by blocks",
        "exact, or agreement of two iterations",
        lambda setup: _method(setup, setup["block"]),
        (BLOCK, STOPPING, START),
    ),
    Method(
        "hybrid-jacobi",
        "refines blocks in parallel up to a length, then decodes one token per pass",
        "Parallel decoding, Algorithm 3 (HGJ)",
        "last iteration, by blocks, then nothing",
        "exact, or agreement of two iterations",
        lambda setup: _method(setup, setup["block"], setup["parallel"]),
        (BLOCK, PARALLEL, STOPPING, START),
    ),
)
