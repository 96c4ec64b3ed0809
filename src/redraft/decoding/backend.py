"""What a backend is: a loaded model with a cache of slots, and what it can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from redraft.decoding.segments import PromptSegment
from redraft.decoding.types import Rows, Score


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do; methods that need more are refused by name."""

    trees: bool = False
    prompt_rows: bool = False
    batches: bool = False
    early_exit: bool = False


class Backend(Protocol):
    """One model, loaded, with a cache of several *slots* (independent sequences)."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    @property
    def context_length(self) -> int:
        """How many ids one slot can hold."""

    @property
    def end_tokens(self) -> frozenset[int]:
        """Ids that end an output."""

    @property
    def pad_token(self) -> int:
        """An id that stands for nothing: what Jacobi decoding starts from."""

    @property
    def vocabulary_size(self) -> int:
        """How many ids there are."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Facts of the model under the keys of GGUF files; prompts are made by them."""

    def open_slot(self) -> int:
        """A free sequence of the cache.

        Raises:
            CapabilityError: all slots are in use.
        """

    def close_slot(self, slot: int) -> None:
        """Forget a sequence."""

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests of different slots with one batched pass.

        Of each prefix the longest part that the slot's cache holds is reused; what a rule rejected is rolled back.

        Raises:
            ContextOverflow: a request does not fit into the context.
        """

    def encode(self, segments: Sequence[PromptSegment]) -> list[int]:
        """Ids of a prompt: those of its whole text, the model's start token before them if its tokenizer puts it there.

        Of the user's segments none becomes a token that does something (`redraft.decoding.segments`).
        """

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        """Ids of a text; ``special`` reads control tokens in it, ``start`` adds the model's start token."""

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for; none for control tokens."""

    def close(self) -> None:
        """Free cache and weights."""


@runtime_checkable
class EncodesSources(Protocol):
    """A backend whose model has an encoder, which reads the source."""

    encoder_passes: int
