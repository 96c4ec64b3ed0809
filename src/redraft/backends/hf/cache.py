"""Static rows: one key/value tensor a layer with a row for every slot, in which rolling back is a shorter length.

A pass says before it runs in which *cells* of which rows its ids are kept (`CellPlan`); every layer writes there and
hands attention the rows up to the longest length.  What a mask hides may hold anything finite, so nothing is ever
cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

#: Cells are added to all rows in blocks of so many.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class CellPlan:
    """Where one pass keeps its keys and values.

    Attributes:
        rows: (batch,) the slots, in the order of the batch.
        cells: (batch, ids) cell of every id; -1, the last cell of all, for padding.
        length: cells that attention reads; those written are among them, but for padding.
        read: what takes the rows: themselves, or a slice where they are neighbours, which copies nothing.
        past: what transformers is told of the length before the pass.
    """

    rows: Tensor
    cells: Tensor
    length: int
    read: Tensor | slice
    past: int

    @classmethod
    def of(cls, slots: Sequence[int], cells: Tensor, length: int, past: int = 0) -> CellPlan:
        """The plan of a pass over ``slots``; ``cells`` is on the model's device."""
        rows, first = torch.tensor(list(slots), device=cells.device), slots[0]
        neighbours = list(slots) == list(range(first, first + len(slots)))
        return cls(rows, cells, length, slice(first, first + len(slots)) if neighbours else rows, past)


class StaticRows(CacheLayerMixin):
    """Keys and values of one layer, (slots, heads, cells, head size) each; grows when a plan needs more cells."""

    is_croppable = True
    is_sliding = False

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots
        self.plan: CellPlan | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make empty rows of the device, type and head size of the first states."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys, self.values = (
            states.new_zeros(self.slots, states.shape[1], 0, states.shape[3]) for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Write the states of a pass, (batch, heads, ids, head size), and return all that its rows hold."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        plan = self.plan
        if plan is None:
            raise RuntimeError("the cache was given no plan for this pass")
        if self.keys.shape[2] <= plan.length:  # one cell more, for padding
            self.keys, self.values = _grown(self.keys, plan.length + 1), _grown(self.values, plan.length + 1)
        at = (plan.rows[:, None], slice(None), plan.cells)
        self.keys[at] = key_states.transpose(1, 2)
        self.values[at] = value_states.transpose(1, 2)
        return self.keys[plan.read, :, : plan.length], self.values[plan.read, :, : plan.length]

    def move(self, row: int, source: Tensor, target: Tensor) -> None:
        """Copy cells of a row to other cells."""
        if self.is_initialized:
            self.keys[row, :, target] = self.keys[row, :, source]
            self.values[row, :, target] = self.values[row, :, source]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """What the models' own masks are made for: length and offset of the keys."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Length before the pass, as the plan has it."""
        return self.plan.past if self.plan else 0

    def get_max_length(self) -> int:
        """No limit."""
        return -1


class SlotCache(Cache):
    """The static rows of all layers.

    Args:
        layers: how many the model has.
        slots: rows of each.
    """

    def __init__(self, layers: int, slots: int) -> None:
        super().__init__(layers=[StaticRows(slots) for _ in range(layers)])

    def follow(self, plan: CellPlan) -> None:
        """Let the next pass keep its states by ``plan``."""
        for layer in self.layers:
            layer.plan = plan

    def move(self, row: int, source: Sequence[int], target: Sequence[int]) -> None:
        """Copy cells of a row to other cells, in all layers."""
        device = self.layers[0].device
        source_cells, target_cells = (torch.tensor(list(cells), device=device) for cells in (source, target))
        for layer in self.layers:
            layer.move(row, source_cells, target_cells)


def _grown(tensor: Tensor, cells: int) -> Tensor:
    """The rows with at least ``cells`` cells, the new ones zero."""
    slots, heads, held, size = tensor.shape
    larger = tensor.new_zeros(slots, heads, -(-cells // BLOCK) * BLOCK, size)
    larger[:, :, :held] = tensor
    return larger
