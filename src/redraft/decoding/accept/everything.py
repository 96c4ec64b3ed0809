"""Accept everything: the draft is used as is and continued (continuous decoding, CD, in the SSBD papers)."""

from __future__ import annotations

from redraft.decoding.accept.walk import walk
from redraft.decoding.types import Draft, Rows, Verdict


class Everything:
    """Accepts the whole draft (of a tree, the path of first children) without consulting the target."""

    bias = 1.0

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the whole draft."""
        return walk(draft, rows, lambda _node, children: children[0])
