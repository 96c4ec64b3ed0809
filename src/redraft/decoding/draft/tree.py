"""A draft tree under construction: paths with the same beginning are merged, and leaves and nodes are capped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from redraft.decoding.types import ROOT, Draft, Provenance

Mark = TypeVar("Mark")


class Tree(Generic[Mark]):
    """Paths merged into a tree; every node has a mark, such as its provenance.

    Args:
        leaves: the most leaves; a backend needs one branch of its cache for each but the first.
        nodes: the most tokens, which all are computed by one pass.
        prevailing: the mark that a node keeps or takes where several paths with different marks go through it; of other
            marks it keeps the first.

    Attributes:
        marks: (n,) of the nodes.
    """

    def __init__(self, leaves: int, nodes: int, prevailing: Mark | None = None) -> None:
        self.marks: list[Mark] = []
        self._most_leaves, self._most_nodes, self._prevailing = leaves, nodes, prevailing
        self._leaves = 0
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._children: dict[int, dict[int, int]] = {ROOT: {}}

    def hang(self, parent: int, steps: Iterable[tuple[int, Mark]]) -> list[int]:
        """Add a path of tokens and marks below ``parent`` as far as the caps allow, and read no further; its nodes."""
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
        # Below a leaf the new node takes its place; anywhere else it is one leaf more.
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

    def draft(self, provenance: Sequence[Provenance], prompt_rows: int = 1) -> Draft:
        """The draft; the provenance of every node and ``prompt_rows`` as of `Draft`."""
        return Draft(tuple(self._tokens), tuple(self._parents), tuple(provenance), prompt_rows=prompt_rows)
