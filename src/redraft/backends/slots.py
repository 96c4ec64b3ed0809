"""What backends share: their numbered slots, and checks of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from redraft.backends.costs import LearnedCosts
from redraft.decoding.backend import CostCurve
from redraft.errors import CapabilityError, ContextOverflow

S = TypeVar("S")


class Slotted(Generic[S]):
    """A backend with ``options.slots`` slots, which learns what its passes cost; `S` is the state of a slot."""

    options: Any
    context_length: int
    costs: LearnedCosts
    _slots: dict[int, S]
    _new_slot: Callable[[int], S]

    def open_slot(self) -> int:
        """Reserve a free slot.

        Raises:
            CapabilityError: all slots are in use.
        """
        for slot in range(self.options.slots):
            if slot not in self._slots:
                self._slots[slot] = self._new_slot(slot)
                return slot
        raise CapabilityError(f"all {self.options.slots} slots are in use; open the model with more slots")

    def settle(self, slot: int) -> None:
        """Do nothing: nothing is asked ahead."""

    def curve(self) -> CostCurve | None:
        """Return what passes cost that verify drafts; None before there were any."""
        return self.costs.curve()

    def _took(self, new: int, rows: int, seconds: float) -> None:
        """Learn from a pass over ``new`` tokens; most of those of a prompt need no row, and cost less than drafts."""
        if 2 * rows >= new:
            self.costs.took(new, seconds)

    def _check_length(self, length: int) -> None:
        if length > self.context_length:
            raise ContextOverflow(f"{length} tokens do not fit into the context length of {self.context_length}")
