"""What backends share: what a model is, its numbered slots, and checks of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from redraft.backends.costs import LearnedCosts
from redraft.decoding.backend import CostCurve, Tokenizer
from redraft.errors import CapabilityError, ContextOverflow

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Facts:
    """A model; what is not listed here is as in `redraft.decoding.backend.Backend`.

    Attributes:
        name: its name in requests and messages.
        tokenizer: its tokenizer, on this machine.
        context_length: maximum number of ids that it or its server can hold.
    """

    name: str
    tokenizer: Tokenizer
    context_length: int
    end_tokens: frozenset[int]
    pad_token: int
    vocabulary_size: int
    metadata: Mapping[str, str] = field(default_factory=dict)


class Slotted(Generic[S]):
    """A backend with ``options.slots`` slots, which learns what its passes cost; `S` is the state of a slot."""

    def __init__(
        self, facts: Facts, options: Any, new_slot: Callable[[int], S], costs: LearnedCosts | None = None
    ) -> None:
        self.options, self.costs, self._new_slot = options, costs or LearnedCosts(), new_slot
        self.context_length = min(options.context_length, facts.context_length)
        self.end_tokens, self.pad_token = facts.end_tokens, facts.pad_token
        self.vocabulary_size, self.metadata = facts.vocabulary_size, facts.metadata
        self.tokenize, self.encode = facts.tokenizer.tokenize, facts.tokenizer.encode
        self.token_bytes = facts.tokenizer.token_bytes
        self._slots: dict[int, S] = {}

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
