"""The paper's stopping condition of Jacobi decoding: two iterations agree (Santilli et al. 2023, equation 5).

Until then nothing is kept, though a prefix may have converged long before; then the whole block is (Algorithms 1-3).
Iterations of a block are bounded by its length (the loop of Algorithm 1, line 3; Proposition 1): after k of them its
first k positions are those of greedy decoding.  Positions after an end token are of no interest and need not agree.
"""

from __future__ import annotations

from redraft.decoding.types import ROOT, Draft, Rows, Verdict, common_prefix


class Agreement:
    """Keeps a block of a chain when it has stopped changing.  It keeps state: one for every decoding.

    Args:
        end_tokens: ids that end an output.
    """

    def __init__(self, end_tokens: frozenset[int]) -> None:
        self._end_tokens = end_tokens
        self._iterations = 0
        self._last: int | None = None

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The block up to its end token, or nothing and no token while it still changes."""
        new = [rows.argmax(node) for node in range(ROOT, len(draft))]
        old = [*draft.tokens, self._last]
        size = next((place + 1 for place, token in enumerate(new) if token in self._end_tokens), len(new))
        self._iterations += 1
        if new[:size] != old[:size] and self._iterations < size:
            self._last = new[-1]
            return Verdict((), None)
        self._iterations, self._last = 0, None
        # A Jacobi block has converged up to here, rounding aside; of any other draft only what this pass confirms has.
        kept = min(size - 1, common_prefix(draft.tokens, new))
        return Verdict(tuple(range(kept)), new[kept])
