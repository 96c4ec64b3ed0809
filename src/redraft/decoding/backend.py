"""The interface of backends: a loaded model with a cache of slots, and what a pass costs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Protocol

from redraft.decoding.segments import PromptSegment
from redraft.decoding.types import Rows, Score


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds per pass by number of new tokens, interpolated linearly between known sizes and extrapolated beyond.

    Attributes:
        sizes: numbers of new tokens, ascending from 1.
        seconds: seconds of one pass for each size.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        growing = all(a < b for a, b in pairwise(self.sizes))
        if len(self.sizes) < 2 or len(self.sizes) != len(self.seconds) or self.sizes[0] != 1 or not growing:
            raise ValueError("a cost curve needs two growing sizes or more, from 1 on, and the seconds of each")

    def __call__(self, new: int) -> float:
        """Return the seconds of a pass over ``new`` tokens, at least 1."""
        last = len(self.sizes) - 1
        right = min(max(bisect_left(self.sizes, new), 1), last)
        low, high = self.sizes[right - 1], self.sizes[right]
        share = (new - low) / (high - low)
        below, above = self.seconds[right - 1 : right + 1]
        if share > 1:  # a slope measured with noise may be negative
            above = max(above, below)
        return (1 - share) * below + share * above

    def break_even(self, drafted: int) -> int:
        """Return how many of ``drafted`` tokens must be accepted for their pass to save time over single tokens.

        A pass that accepts a tokens yields a + 1.  The result is above ``drafted`` if the pass never saves time.
        """
        return int(self(drafted + 1) / self(1))


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
