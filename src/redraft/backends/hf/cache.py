"""A cache with static rows: one key/value tensor per layer with a row per slot; rolling back only shortens the length.

Each pass first states the *cells* of each row in which it keeps its ids (`CellPlan`).  Every layer writes there and
passes the rows up to the largest length to attention.  Masked cells may contain any finite values, so nothing is ever
cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import Cache, DynamicLayer

from redraft.decoding.types import ROOT, Draft


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
    draft: Draft
    wanted: int


#: Name of the mask of a model that takes one for all layers.
ONE_MASK = "mask"


class Masks:
    """Makes the masks of one model.

    In some models, all or some layers attend only to the most recent positions.  The cache keeps all cells anyway, so
    that it can be rolled back; the mask hides those outside the window.
    """

    def __init__(self, config: Any, dtype: torch.dtype) -> None:
        text = config.get_text_config()
        kinds = getattr(text, "layer_types", None)
        windowed = kinds is None or "sliding_attention" in kinds
        self._window: int | None = (getattr(text, "sliding_window", None) or None) if windowed else None
        #: Layer types, if the model takes a mask for each; otherwise it takes one mask.
        self._kinds = sorted(set(kinds)) if kinds is not None and self._window else [ONE_MASK]
        self._dtype = dtype

    def of(self, rows: Sequence[PassRow], width: int, length: int, device: torch.device) -> dict[str, Tensor]:
        """Return the (batch, 1, width, length) additive masks of a pass by layer type, or as `ONE_MASK`."""
        seen = torch.stack([_visible(row, width, length) for row in rows])
        near = seen
        if self._window is not None:
            near = seen & torch.stack([_near(row, width, length, self._window) for row in rows])
        masks = {}
        for kind in self._kinds:
            hidden = ~(near if kind in (ONE_MASK, "sliding_attention") else seen)[:, None].to(device)
            added = torch.zeros(hidden.shape, dtype=self._dtype, device=device)
            masks[kind] = added.masked_fill_(hidden, torch.finfo(self._dtype).min)
        return masks


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


#: Rows grow in blocks of this many cells.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class CellPlan:
    """Where a pass stores its keys and values.

    Attributes:
        rows: (batch,) the slots, in the order of the batch.
        cells: (batch, ids) cell of every id; -1, the last cell, for padding.
        length: number of cells that attention reads, including those written, except padding.
        read: index of the rows: ``rows``, or a slice if they are adjacent, which avoids a copy.
        past: the length before the pass that is reported to transformers.
    """

    rows: Tensor
    cells: Tensor
    length: int
    read: Tensor | slice
    past: int

    @classmethod
    def of(cls, slots: Sequence[int], cells: Tensor, length: int, past: int = 0) -> CellPlan:
        """Return the plan of a pass over ``slots``; ``cells`` is on the model's device."""
        rows, first = torch.tensor(list(slots), device=cells.device), slots[0]
        neighbours = list(slots) == list(range(first, first + len(slots)))
        return cls(rows, cells, length, slice(first, first + len(slots)) if neighbours else rows, past)


class StaticRows(DynamicLayer):
    """Keys and values of one layer, (slots, heads, cells, head size) each; grows if a plan needs more cells.

    Args:
        slots: number of rows.
        cells: number of cells at first.
    """

    def __init__(self, slots: int, cells: int = 0) -> None:
        super().__init__()
        self.slots, self.cells = slots, cells
        self.plan: CellPlan | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate empty rows with the device, dtype and head size of the first states."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys, self.values = (
            states.new_zeros(self.slots, states.shape[1], self.cells, states.shape[3])
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Write the states of a pass, (batch, heads, ids, head size), and return everything in its rows."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        plan = self.plan
        if plan is None:
            raise RuntimeError("the cache was given no plan for this pass")
        if self.keys.shape[2] <= plan.length:  # plus one cell for padding
            self.keys, self.values = _grown(self.keys, plan.length + 1), _grown(self.values, plan.length + 1)
        at = (plan.rows[:, None], slice(None), plan.cells)
        self.keys[at] = key_states.transpose(1, 2)
        self.values[at] = value_states.transpose(1, 2)
        return self.keys[plan.read, :, : plan.length], self.values[plan.read, :, : plan.length]

    def get_seq_length(self) -> int:
        """Return the length before the pass, from the plan."""
        return self.plan.past if self.plan else 0


class SlotCache(Cache):
    """The static rows of all layers; arguments as for `StaticRows`."""

    def __init__(self, layers: int, slots: int, cells: int = 0) -> None:
        super().__init__(layers=[StaticRows(slots, cells) for _ in range(layers)])

    def follow(self, plan: CellPlan) -> None:
        """Use ``plan`` for the next pass."""
        for layer in self.layers:
            layer.plan = plan

    def move(self, row: int, source: Sequence[int], target: Sequence[int]) -> None:
        """Copy cells of a row to other cells of the row, in all layers."""
        device = self.layers[0].device
        source_cells, target_cells = (torch.tensor(list(cells), device=device) for cells in (source, target))
        for layer in filter(lambda each: each.is_initialized, self.layers):
            for states in (layer.keys, layer.values):
                states[row, :, target_cells] = states[row, :, source_cells]


def _grown(tensor: Tensor, cells: int) -> Tensor:
    """Return the rows enlarged to at least ``cells`` cells; new cells are zero."""
    more = -(-cells // BLOCK) * BLOCK - tensor.shape[2]
    return pad(tensor, (0, 0, 0, more))
