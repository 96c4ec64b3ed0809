"""The stopping condition of Jacobi decoding: two successive iterations agree (Santilli et al. 2023, equation 5).

Until then nothing is accepted, even if a prefix has converged; then the whole block is (Algorithms 1-3).  A pass also
predicts the position after its last guess, which needs no second look: once the guesses agree, it follows from them.
So b - 1 positions of a block of b are compared, as in the authors' code.

The number of iterations is at most the length of the block (loop in line 3 of Algorithm 1; Proposition 1): after k
iterations, the first k positions equal greedy decoding.  Positions after an end token are ignored.
"""

from __future__ import annotations

from redraft.decoding.types import ROOT, Draft, Rows, Verdict, common_prefix


class Agreement:
    """Accepts a block of a chain once it has stopped changing.  It has state; create one per decoding.

    Args:
        end_tokens: ids that end an output.
    """

    def __init__(self, end_tokens: frozenset[int]) -> None:
        self._end_tokens = end_tokens
        self._iterations = 0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the block up to its end token; while it still changes, accept nothing."""
        new = [rows.argmax(node) for node in range(ROOT, len(draft))]
        last = next((place for place, token in enumerate(new) if token in self._end_tokens), len(draft))
        agreed = common_prefix(draft.tokens, new)
        self._iterations += 1
        if agreed < last and self._iterations <= last:
            return Verdict((), None)
        self._iterations = 0
        # At the most iterations, a Jacobi block has converged too, except for rounding; of other drafts, only what this
        # pass confirms has.
        kept = min(last, agreed)
        return Verdict(tuple(range(kept)), new[kept])
