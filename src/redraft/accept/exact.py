"""Exact acceptance: a draft token is kept if the target would have chosen it, so the output is greedy decoding's."""

from __future__ import annotations

from redraft.accept.walk import walk
from redraft.types import Draft, Rows, Verdict


class Exact:
    """Keeps a draft token only where it is the target's argmax."""

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The path of argmaxes through the draft tree."""

        def choose(node: int, children: list[int]) -> int | None:
            best = rows.argmax(node)
            return next((child for child in children if draft.tokens[child] == best), None)

        return walk(draft, rows, choose)
