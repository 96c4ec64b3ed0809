"""A cache with static rows: one key/value tensor per layer with a row per slot; rolling back only shortens the length.

Each pass first states the *cells* of each row in which it keeps its ids (`CellPlan`).  Every layer writes there and
passes the rows up to the largest length to attention.  Masked cells may contain any finite values, so nothing is ever
cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

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


class StaticRows(CacheLayerMixin):
    """Keys and values of one layer, (slots, heads, cells, head size) each; grows if a plan needs more cells."""

    is_croppable = True
    is_sliding = False

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots
        self.plan: CellPlan | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate empty rows with the device, dtype and head size of the first states."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys, self.values = (
            states.new_zeros(self.slots, states.shape[1], 0, states.shape[3]) for states in (key_states, value_states)
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

    def move(self, row: int, source: Tensor, target: Tensor) -> None:
        """Copy cells of a row to other cells of the row."""
        if self.is_initialized:
            self.keys[row, :, target] = self.keys[row, :, source]
            self.values[row, :, target] = self.values[row, :, source]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return length and offset of the keys, for the models' own masks."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Return the length before the pass, from the plan."""
        return self.plan.past if self.plan else 0

    def get_max_length(self) -> int:
        """Return that there is no limit."""
        return -1


class SlotCache(Cache):
    """The static rows of all layers.

    Args:
        layers: number of layers.
        slots: rows per layer.
    """

    def __init__(self, layers: int, slots: int) -> None:
        super().__init__(layers=[StaticRows(slots) for _ in range(layers)])

    def follow(self, plan: CellPlan) -> None:
        """Use ``plan`` for the next pass."""
        for layer in self.layers:
            layer.plan = plan

    def move(self, row: int, source: Sequence[int], target: Sequence[int]) -> None:
        """Copy cells of a row to other cells of the row, in all layers."""
        device = self.layers[0].device
        source_cells, target_cells = (torch.tensor(list(cells), device=device) for cells in (source, target))
        for layer in self.layers:
            layer.move(row, source_cells, target_cells)


def _grown(tensor: Tensor, cells: int) -> Tensor:
    """Return the rows enlarged to at least ``cells`` cells; new cells are zero."""
    slots, heads, held, size = tensor.shape
    larger = tensor.new_zeros(slots, heads, -(-cells // BLOCK) * BLOCK, size)
    larger[:, :, :held] = tensor
    return larger
