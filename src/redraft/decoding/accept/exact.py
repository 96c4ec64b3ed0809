"""Exact acceptance: a draft token is kept if the target would have chosen it, so the output is greedy decoding's."""

from __future__ import annotations

from functools import partial

from redraft.decoding.accept.walk import walk
from redraft.decoding.types import Draft, Rows, Verdict


def favourite(draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
    """The child of ``node`` that is the target's best token there; None if that was not drafted."""
    best = rows.argmax(node)
    return next((child for child in children if draft.tokens[child] == best), None)


class Exact:
    """Keeps a draft token only where it is the target's argmax."""

    bias = 0.0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The path of argmaxes through the draft tree."""
        return walk(draft, rows, partial(favourite, draft, rows))
