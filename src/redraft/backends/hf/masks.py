"""Attention masks of a pass: each id attends to earlier cells, only to its own branch, and only within a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from redraft.decoding.types import EMPTY_DRAFT, ROOT, Draft


@dataclass(slots=True)
class PassRow:
    """One request of a pass.

    Attributes:
        ids: (n,) the ids to process, prefix before draft.
        cells: (n,) their cells.
        positions: (n,) their positions.
        first_node: index of the first draft token.
        draft: the draft.
        wanted: number of ids at the end whose rows are needed.
    """

    ids: list[int]
    cells: list[int]
    positions: list[int]
    first_node: int
    draft: Draft = EMPTY_DRAFT
    wanted: int = 1


class Masks:
    """Makes the masks of one model.

    In some models, all or some layers attend only to the most recent positions.  The cache keeps all cells anyway, so
    that it can be rolled back; the mask hides those outside the window.

    Args:
        config: the model's configuration in transformers.
        dtype: its data type.
    """

    def __init__(self, config: Any, dtype: torch.dtype) -> None:
        text = config.get_text_config()
        kinds = getattr(text, "layer_types", None)
        windowed = kinds is None or "sliding_attention" in kinds
        self._window: int | None = (getattr(text, "sliding_window", None) or None) if windowed else None
        #: Layer types, if the model takes a mask for each; otherwise it takes one mask.
        self._kinds = sorted(set(kinds)) if kinds is not None and self._window else []
        self._dtype = dtype

    def of(self, rows: Sequence[PassRow], device: torch.device) -> Tensor | dict[str, Tensor]:
        """Return the (batch, 1, ids, cells) additive mask of a pass, by layer type if there are several."""
        width, length = max(len(row.ids) for row in rows), max(row.cells[-1] for row in rows) + 1
        seen = torch.stack([_visible(row, width, length) for row in rows])
        if self._window is None:
            return self._added(seen, device)
        near = self._added(seen & torch.stack([_near(row, width, length, self._window) for row in rows]), device)
        if not self._kinds:
            return near
        far = self._added(seen, device)
        return {kind: near if kind == "sliding_attention" else far for kind in self._kinds}

    def _added(self, seen: Tensor, device: torch.device) -> Tensor:
        seen = seen[:, None].to(device)
        hidden = torch.finfo(self._dtype).min
        return torch.zeros(seen.shape, dtype=self._dtype, device=device).masked_fill_(~seen, hidden)


def _visible(row: PassRow, width: int, length: int) -> Tensor:
    """Return the (width, length) cells to which each id of a row attends; none for padding."""
    seen = torch.zeros(width, length, dtype=torch.bool)
    first = width - len(row.ids)
    cells = torch.arange(length)
    # In a chain, cells and positions are the same.
    seen[first:] = cells <= torch.tensor(row.cells)[:, None]
    if not row.draft.is_chain:
        prefix = first + row.first_node
        seen[prefix:, row.cells[row.first_node] :] = False
        for node, parent in enumerate(row.draft.parents):
            if parent != ROOT:
                seen[prefix + node] = seen[prefix + parent]
            seen[prefix + node, row.cells[row.first_node + node]] = True
    return seen


def _near(row: PassRow, width: int, length: int, window: int) -> Tensor:
    """Return the (width, length) cells that hold one of the last ``window`` positions up to each id's own."""
    positions = torch.arange(length)
    positions[row.cells] = torch.tensor(row.positions)  # nodes of a tree have cells of their own
    own = torch.full((width,), length)
    own[width - len(row.ids) :] = torch.tensor(row.positions)
    return positions > own[:, None] - window
