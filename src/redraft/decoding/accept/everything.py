"""Accept everything: the draft is taken as is and only continued (continuous decoding, CD, in the SSBD papers)."""

from __future__ import annotations

from redraft.decoding.accept.walk import walk
from redraft.decoding.types import Draft, Rows, Verdict


class Everything:
    """Keeps the whole draft (of a tree, the path of first children) without asking the target."""

    bias = 1.0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """The whole draft."""
        return walk(draft, rows, lambda _node, children: children[0])
