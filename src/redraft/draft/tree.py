"""A draft tree under construction: paths with the same beginning are merged, and leaves and nodes are capped."""

from __future__ import annotations

from collections.abc import Iterable

from redraft.draft.pool import Step
from redraft.types import ROOT, Draft, Provenance


class Tree:
    """Paths merged into a tree.

    A token that was taken both from the prompt and from generated text counts as the prompt's.

    Args:
        leaves: the most leaves; a backend needs one branch of its cache for each but the first.
        nodes: the most tokens, which all are computed by one pass.
    """

    def __init__(self, leaves: int, nodes: int) -> None:
        self._most_leaves, self._most_nodes = leaves, nodes
        self._leaves = 0
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._provenance: list[Provenance] = []
        self._children: dict[int, dict[int, int]] = {ROOT: {}}

    def hang(self, parent: int, steps: Iterable[Step]) -> list[int]:
        """Add a path below ``parent`` as far as the caps allow; its nodes."""
        path: list[int] = []
        for token, provenance in steps:
            node = self._children[parent].get(token)
            if node is None:
                node = self._add(parent, token, provenance)
                if node is None:
                    break
            elif provenance is Provenance.PROMPT:
                self._provenance[node] = provenance
            path.append(node)
            parent = node
        return path

    def _add(self, parent: int, token: int, provenance: Provenance) -> int | None:
        # Below a leaf the new node takes its place; anywhere else it is one leaf more.
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

    def draft(self, prompt_rows: int) -> Draft:
        """The draft; ``prompt_rows`` as of `Draft`."""
        return Draft(tuple(self._tokens), tuple(self._parents), tuple(self._provenance), prompt_rows=prompt_rows)
