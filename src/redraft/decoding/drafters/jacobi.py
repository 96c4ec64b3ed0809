"""Jacobi, Gauss-Seidel-Jacobi and hybrid decoding as a drafter (Santilli et al. 2023, Algorithms 1-3).

The paper solves y_i = argmax p(y_i | y_<i, x) for a block of positions at once (equations 3 and 4): each iteration runs
the model on the current guess, and its predictions are the next guess.  Here the guess is the draft, the pass that
scores it is the iteration, and its rows are the next guess.  The acceptance rule determines the stopping condition:
`redraft.decoding.rules.agreement.Agreement` is the paper's (equation 5); `redraft.decoding.rules.exact.Exact` accepts
every converged prefix at once ("fast-forward") and lets the block slide.

A block of b positions needs b - 1 draft tokens, since the pass also predicts the position after its last input.

The paper assumes that the true length of the translation is known (section 4.1).  Here a whole sentence is a block of
estimated length, and another block follows if that was too short.
"""

from __future__ import annotations

from redraft.decoding.types import ROOT, Asking, Context, Draft, Drafter, Provenance, Rows, Verdict

#: Initial guesses of a position (INITT in Algorithm 1; the paper uses only "pad").
STARTS = ("pad", "source", "previous")


class Jacobi(Drafter):
    """Proposes the predictions of the last iteration.

    Args:
        pad: id of the paper's initial guess.
        block: positions solved together (b), at least 1 (autoregressive); 0 solves the whole sentence.
        parallel: output tokens after which decoding becomes autoregressive (h in Algorithm 3); None for never.
        start: one of `STARTS`.  Positions beyond the source or the previous output start as ``pad``.
    """

    def __init__(self, pad: int, block: int, parallel: int | None = None, start: str = "pad") -> None:
        self._pad, self._block, self._parallel, self._start = pad, block, parallel, start
        self._guess: list[int] = []

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the guess for the positions after the output, up to the block's length."""
        yield from ()
        done = len(context.output)
        if self._parallel is not None and done >= self._parallel:
            return Draft()
        # A short block slides on with the output; a whole sentence ends at its estimated length.
        whole = estimated_length(context)
        wanted = (self._block or whole - done % whole) - 1
        copied = {"pad": (), "source": context.source_ids, "previous": context.previous}[self._start]
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
    source = context.source_ids or context.encoder or context.prompt
    return len(source) + len(source) // 2 + 4
