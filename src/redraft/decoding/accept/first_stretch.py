"""Biased acceptance of the previous output, and exact acceptance of all guesses.

The output therefore equals SSBD's (`redraft.decoding.accept.biased`) whatever is guessed: the bias applies to exactly
the tokens to which it applies in SSBD.
"""

from __future__ import annotations

from functools import partial

from redraft.decoding.accept.biased import Biased
from redraft.decoding.accept.exact import favourite
from redraft.decoding.accept.walk import walk
from redraft.decoding.types import Draft, Provenance, Rows, Verdict


class FirstStretch:
    """Judges the previous output as SSBD does, and all other draft tokens exactly.

    Args:
        biased: the rule for the previous output, which is a chain from the root.
    """

    def __init__(self, biased: Biased) -> None:
        self._biased = biased

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the longest path under both rules."""
        return walk(draft, rows, partial(self._choose, draft, rows))

    def _choose(self, draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
        """Return the previous output's token if the bias keeps it; among guesses, the target's own token."""
        first = children[0]
        if draft.provenance[first] is Provenance.PREVIOUS:
            return first if self._biased.keeps(rows, node, draft.tokens[first]) else None
        return favourite(draft, rows, node, children)
