"""The stopping condition of Jacobi decoding: two successive iterations agree (Santilli et al. 2023, equation 5).

Until then nothing is accepted, even if a prefix has converged; then the whole block is (Algorithms 1-3).  The number of
iterations is at most the length of the block (loop in line 3 of Algorithm 1; Proposition 1): after k iterations, the
first k positions equal greedy decoding.  Positions after an end token are ignored.
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
        self._last: int | None = None

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the block up to its end token; while it still changes, accept nothing."""
        new = [rows.argmax(node) for node in range(ROOT, len(draft))]
        old = [*draft.tokens, self._last]
        size = next((place + 1 for place, token in enumerate(new) if token in self._end_tokens), len(new))
        self._iterations += 1
        if new[:size] != old[:size] and self._iterations < size:
            self._last = new[-1]
            return Verdict((), None)
        self._iterations, self._last = 0, None
        # A Jacobi block has converged up to here, except for rounding; of other drafts, only what this pass confirms
        # has.
        kept = min(size - 1, common_prefix(draft.tokens, new))
        return Verdict(tuple(range(kept)), new[kept])
