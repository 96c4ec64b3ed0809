"""A draft tree under construction: paths with a common prefix are merged, and leaves and nodes are limited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from redraft.decoding.types import ROOT, Draft, Provenance

Mark = TypeVar("Mark")


class Tree(Generic[Mark]):
    """Merges paths into a tree; every node has a mark, such as its provenance.

    Args:
        leaves: maximum leaves; a backend needs a branch of its cache for each except the first.
        nodes: maximum nodes; one pass computes all of them.  None does not limit them.
        prevailing: the mark that wins if paths with different marks share a node; otherwise the first one stays.

    Attributes:
        marks: (n,) the marks of the nodes.
    """

    def __init__(self, leaves: int, nodes: int | None = None, prevailing: Mark | None = None) -> None:
        self.marks: list[Mark] = []
        self._most_leaves, self._most_nodes, self._prevailing = leaves, nodes, prevailing
        self._leaves = 0
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._children: dict[int, dict[int, int]] = {ROOT: {}}

    def add_path(self, parent: int, steps: Iterable[tuple[int, Mark]]) -> list[int]:
        """Add a path below ``parent`` as far as the limits allow, reading no further; return its nodes."""
        path: list[int] = []
        for token, mark in steps:
            node = self._children[parent].get(token)
            if node is None:
                node = self._add(parent, token, mark)
                if node is None:
                    break
            elif mark == self._prevailing:
                self.marks[node] = mark
            path.append(node)
            parent = node
        return path

    def _add(self, parent: int, token: int, mark: Mark) -> int | None:
        # Below a leaf, a new node replaces it as a leaf; elsewhere it adds one.
        grows = parent == ROOT or bool(self._children[parent])
        if self._leaves + grows > self._most_leaves or len(self._tokens) == self._most_nodes:
            return None
        node = len(self._tokens)
        self._leaves += grows
        self._tokens.append(token)
        self._parents.append(parent)
        self.marks.append(mark)
        self._children[parent][token] = node
        self._children[node] = {}
        return node

    def draft(self, provenance: Sequence[Provenance], prompt_rows: int = 1, *, leaves_only: bool = False) -> Draft:
        """Return the draft, with the provenance of every node, ``prompt_rows`` and ``leaves_only`` (see `Draft`)."""
        tokens, parents = tuple(self._tokens), tuple(self._parents)
        return Draft(tokens, parents, tuple(provenance), prompt_rows=prompt_rows, leaves_only=leaves_only)
