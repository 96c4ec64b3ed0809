"""Exact acceptance: a draft token is accepted if it is the target's choice, so the output equals greedy decoding."""

from __future__ import annotations

from functools import partial

from redraft.decoding.accept.walk import walk
from redraft.decoding.types import Draft, Rows, Verdict


def favourite(draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
    """Return the child of ``node`` that is the target's most probable token; None if it was not drafted."""
    best = rows.argmax(node)
    return next((child for child in children if draft.tokens[child] == best), None)


class Exact:
    """Accepts a draft token only if it is the target's argmax."""

    bias = 0.0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the path of argmaxes through the draft tree."""
        return walk(draft, rows, partial(favourite, draft, rows))
