"""A draft tree under construction: paths with a common prefix are merged, and leaves and nodes are limited."""

from __future__ import annotations

from collections.abc import Iterable

from redraft.decoding.types import ROOT, Draft, Provenance


class Tree:
    """Merges paths into a tree.

    Args:
        leaves: maximum leaves; a backend needs a branch of its cache for each except the first.
        nodes: maximum nodes; one pass computes all of them.  None does not limit them.
        prevailing: the provenance of a node that paths with this one and another share; otherwise the first one stays.
    """

    def __init__(self, leaves: int, nodes: int | None = None, prevailing: Provenance | None = None) -> None:
        self._most_leaves, self._most_nodes, self._prevailing = leaves, nodes, prevailing
        self._leaves = 0
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._provenance: list[Provenance] = []
        self._children: dict[int, dict[int, int]] = {ROOT: {}}

    def add_path(self, parent: int, steps: Iterable[tuple[int, Provenance]]) -> list[int]:
        """Add a path below ``parent`` as far as the limits allow, reading no further; return its nodes."""
        path: list[int] = []
        for token, provenance in steps:
            node = self._children[parent].get(token)
            if node is None:
                node = self._add(parent, token, provenance)
                if node is None:
                    break
            elif provenance == self._prevailing:
                self._provenance[node] = provenance
            path.append(node)
            parent = node
        return path

    def _add(self, parent: int, token: int, provenance: Provenance) -> int | None:
        # Below a leaf, a new node replaces it as a leaf; elsewhere it adds one.
        grows = parent == ROOT or bool(self._children[parent])
        if self._leaves + grows > self._most_leaves or len(self._tokens) == self._most_nodes:
            return None
        node = len(self._tokens)
        self._leaves += grows
        self._tokens.append(token)
        self._parents.append(parent)
        self._provenance.append(provenance)
        self._children[parent][token] = node
        self._children[node] = {}
        return node

    def draft(self, prompt_rows: int = 1, *, leaves_only: bool = False) -> Draft:
        """Return the draft with ``prompt_rows`` and ``leaves_only`` (see `Draft`)."""
        nodes = tuple(self._tokens), tuple(self._parents), tuple(self._provenance)
        return Draft(*nodes, prompt_rows=prompt_rows, leaves_only=leaves_only)
