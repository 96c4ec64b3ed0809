"""The interface of backends: a loaded model with a cache of slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from redraft.decoding.cost import CostCurve
from redraft.decoding.segments import PromptSegment
from redraft.decoding.types import Rows, Score


class Capability(Enum):
    """What a backend may support; methods that need more are rejected by name."""

    TREES = "trees"
    PROMPT_ROWS = "prompt rows"
    BATCHES = "batches"
    #: Its ``early_exit(layers)`` returns a model of the first layers, with the same head and a separate cache.
    EARLY_EXIT = "early exit"
    #: Those of a search (`redraft.decoding.types.Spare`), for one slot at a time.
    HYPOTHESES = "hypotheses"


class Tokenizer(Protocol):
    """Converts texts to ids, and ids to bytes."""

    def encode(self, segments: Sequence[PromptSegment]) -> list[int]:
        """Return the ids of a prompt: those of its whole text, after the start token if the tokenizer adds one.

        No part of the user's segments becomes a functional token (`redraft.decoding.segments`).
        """

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        """Return the ids of a text; ``special`` recognises control tokens in it, ``start`` adds the start token."""

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token; empty for control tokens."""


class Backend(Tokenizer, Protocol):
    """A loaded model with a cache of several *slots* (independent sequences)."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the backend supports."""

    @property
    def context_length(self) -> int:
        """Number of ids that a slot can hold."""

    @property
    def end_tokens(self) -> frozenset[int]:
        """Ids that end an output."""

    @property
    def pad_token(self) -> int:
        """Id of the padding token: the initial guess of Jacobi decoding."""

    @property
    def vocabulary_size(self) -> int:
        """Number of ids in the vocabulary."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the model under GGUF keys; they determine the prompt format."""

    def open_slot(self) -> int:
        """Reserve a free sequence of the cache.

        Raises:
            CapabilityError: all slots are in use.
        """

    def close_slot(self, slot: int) -> None:
        """Release a slot and clear its cache."""

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests of different slots with one batched pass.

        The longest prefix in the slot's cache is reused; rejected tokens are rolled back.

        Raises:
            ContextOverflow: a request exceeds the context length.
        """

    def settle(self, slot: int) -> None:
        """Drop what was asked ahead for a slot: its decoding has ended, perhaps before the model would end it."""

    def curve(self) -> CostCurve | None:
        """Return what its passes cost, learned from those that have run; None as long as that is unknown."""

    def close(self) -> None:
        """Free the cache and the weights."""
