"""What all rules share: walking down the draft tree until no child is accepted."""

from __future__ import annotations

from collections.abc import Callable

from redraft.types import ROOT, Draft, Rows, Verdict

#: ``choose(node, children)`` -> the accepted child of ``node`` (at least one child is given), or None to stop there.
Choice = Callable[[int, list[int]], int | None]


def walk(draft: Draft, rows: Rows, choose: Choice) -> Verdict:
    """Accept from the root down as long as ``choose`` finds a child; the target's own best token follows."""
    children: dict[int, list[int]] = {}
    for child, parent in enumerate(draft.parents):
        children.setdefault(parent, []).append(child)
    path: list[int] = []
    node = ROOT
    while node in children:
        chosen = choose(node, children[node])
        if chosen is None:
            break
        path.append(chosen)
        node = chosen
    return Verdict(tuple(path), rows.argmax(node))
