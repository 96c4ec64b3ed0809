"""The way through a draft tree, and exact acceptance, which several papers share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from redraft.decoding.sampling import Sampler
from redraft.decoding.types import ROOT, Draft, Rows, Rule, Verdict

#: ``choose(node, children)`` returns the accepted one of at least one child of ``node``, or None to stop.
ChooseChild = Callable[[int, list[int]], int | None]


def walk(draft: Draft, rows: Rows, choose: ChooseChild, sampler: Sampler | None = None) -> Verdict:
    """Accept tokens from the root down while ``choose`` returns a child, and one of the target's own after them.

    A sampler draws that token; without one, it is the most probable.
    """
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
    token = sampler.draw(sampler.distribution(rows, node)) if sampler else rows.argmax(node)
    return Verdict(tuple(path), token)


def argmax_child(draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
    """Return the child of ``node`` that is the target's most probable token; None if it was not drafted."""
    best = rows.argmax(node)
    return next((child for child in children if draft.tokens[child] == best), None)


class Exact(Rule):
    """Accepts a draft token only if it is the target's argmax, so the output equals greedy decoding."""

    def biases(self, draft: Draft) -> tuple[float, ...]:
        """Return a bias of 0 for every token."""
        return (0.0,) * len(draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the path of argmaxes through the draft tree."""
        return walk(draft, rows, partial(argmax_child, draft, rows))
