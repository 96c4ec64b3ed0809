"""Accept the whole draft: continuous decoding."""

from __future__ import annotations

from redraft.decoding.rules.exact import walk
from redraft.decoding.types import Draft, Rows, Verdict


class Everything:
    """Accepts the whole draft (of a tree, the path of first children): continuous decoding (CD) in the SSBD papers."""

    def biases(self, draft: Draft) -> tuple[float, ...]:
        """Return a bias of 1 for every token."""
        return (1.0,) * len(draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the whole draft."""
        return walk(draft, rows, lambda _node, children: children[0])
