"""Biased acceptance while nothing of the previous output has been refused, exact acceptance after it.

So the output is SSBD's own (`redraft.accept.biased`), however the previous output is cut into drafts, and whatever is
drafted once the two have parted.
"""

from __future__ import annotations

from functools import partial

from redraft.accept.biased import Biased
from redraft.accept.exact import Exact, favourite
from redraft.accept.walk import walk
from redraft.draft.stretch import Stretch
from redraft.types import ROOT, Draft, Provenance, Rows, Verdict


class FirstStretch:
    """Judges pieces of the previous output as SSBD judges the whole of it.

    SSBD verifies the previous output at once.  Where only a piece of it is drafted, the token after the piece would
    have been a draft token too, so the bias decides about it as well.

    Args:
        biased: the rule of the first stretch.
        stretch: shared with the drafter.
    """

    def __init__(self, biased: Biased, stretch: Stretch) -> None:
        self._biased, self._exact, self._stretch = biased, Exact(), stretch

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The verdict; moves the stretch on, or ends it."""
        stretch = self._stretch
        if not stretch.open:
            return self._exact.judge(draft, rows)
        verdict = walk(draft, rows, partial(self._choose, draft, rows))
        stretch.kept += sum(draft.provenance[node] is Provenance.PREVIOUS for node in verdict.accepted)
        if stretch.kept == stretch.drafted < len(stretch.previous):
            last = verdict.accepted[-1] if verdict.accepted else ROOT
            following = stretch.previous[stretch.kept]
            if self._biased.keeps(rows, last, following):
                stretch.kept += 1
                stretch.drafted += 1
                stretch.open = stretch.kept < len(stretch.previous)
                return Verdict(verdict.accepted, following)
        stretch.open = False
        return verdict

    def _choose(self, draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
        """The previous output's token if the bias keeps it; of what is guessed behind its end, the target's own."""
        first = children[0]
        if draft.provenance[first] is Provenance.PREVIOUS:
            return first if self._biased.keeps(rows, node, draft.tokens[first]) else None
        return favourite(draft, rows, node, children)
