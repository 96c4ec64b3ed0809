"""Biased acceptance of the previous output, exact acceptance of what is guessed behind it or after it.

So the output is SSBD's own (`redraft.decoding.accept.biased`), whatever is guessed: the bias decides about every token
that it decides about in SSBD, and about no other.
"""

from __future__ import annotations

from functools import partial

from redraft.decoding.accept.biased import Biased
from redraft.decoding.accept.exact import favourite
from redraft.decoding.accept.walk import walk
from redraft.decoding.types import Draft, Provenance, Rows, Verdict


class FirstStretch:
    """Judges the previous output as SSBD does, and every other draft token exactly.

    Args:
        biased: the rule for the previous output, which is a chain from the root.
    """

    def __init__(self, biased: Biased) -> None:
        self._biased = biased

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The longest path that the two rules keep."""
        return walk(draft, rows, partial(self._choose, draft, rows))

    def _choose(self, draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
        """The previous output's token if the bias keeps it; of guesses the target's own."""
        first = children[0]
        if draft.provenance[first] is Provenance.PREVIOUS:
            return first if self._biased.keeps(rows, node, draft.tokens[first]) else None
        return favourite(draft, rows, node, children)
