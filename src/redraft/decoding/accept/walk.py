"""What rules share: ways down the draft tree, child by child or over all accepted paths."""

from __future__ import annotations

from collections.abc import Callable

from redraft.decoding.types import ROOT, Draft, Rows, Verdict

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


def longest(draft: Draft, rows: Rows, passes: Callable[[int, int], bool]) -> Verdict:
    """Accept the longest path of which every token passes, and of equally long ones the most probable.

    Args:
        passes: ``passes(node, child)`` says whether the child may follow; asked only where ``node`` is accepted.
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
