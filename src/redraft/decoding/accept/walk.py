"""Shared by the rules: ways through the draft tree, child by child or over all accepted paths."""

from __future__ import annotations

from collections.abc import Callable

from redraft.decoding.types import ROOT, Draft, Rows, Verdict

#: ``choose(node, children)`` returns the accepted one of at least one child of ``node``, or None to stop.
Choice = Callable[[int, list[int]], int | None]


def walk(draft: Draft, rows: Rows, choose: Choice) -> Verdict:
    """Accept tokens from the root down while ``choose`` returns a child; the target's most probable token follows."""
    if not draft.tokens:
        return Verdict((), rows.argmax(ROOT))
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


def longest(draft: Draft, rows: Rows, passes: Callable[[int, int], bool]) -> Verdict:
    """Accept the longest path whose tokens all pass; of equally long ones, the most probable.

    Args:
        draft: the draft.
        rows: its rows.
        passes: ``passes(node, child)`` returns whether the child may follow; called only for accepted nodes.
    """
    reached: dict[int, tuple[int, float]] = {ROOT: (0, 0.0)}  # depth and log-probability of the path to each node
    for child, node in enumerate(draft.parents):
        if node in reached and passes(node, child):
            depth, logprob = reached[node]
            reached[child] = (depth + 1, logprob + rows.logprob(node, draft.tokens[child]))
    last = node = max(reached, key=reached.__getitem__)
    path: list[int] = []
    while node != ROOT:
        path.append(node)
        node = draft.parents[node]
    return Verdict(tuple(reversed(path)), rows.argmax(last))
