"""The input of one llama.cpp call: ids with positions, sequences, and whether their rows are needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redraft.backends.engine import lib
from redraft.decoding.types import ROOT, Draft


@dataclass(slots=True)
class Feed:
    """Ids to decode, in order.

    Attributes:
        tokens: (n,) the ids.
        positions: (n,) the position of each in its sequences.
        sequences: (n,) the sequences to which each belongs.
        wanted: (n,) whether its row is needed.
        rows: number of rows needed.
    """

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    sequences: list[list[int]] = field(default_factory=list)
    wanted: list[bool] = field(default_factory=list)
    rows: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[list[int]], rows: int) -> None:
        """Append ids; the rows of the last ``rows`` of them are needed."""
        self.tokens += tokens
        self.positions += positions
        self.sequences += sequences
        self.wanted += [False] * (len(tokens) - rows) + [True] * rows
        self.rows += rows

    def parts(self, size: int) -> Iterator[Feed]:
        """Yield the ids in pieces of at most ``size``."""
        for start in range(0, len(self), size):
            yield self.part(start, start + size)

    def part(self, start: int, end: int) -> Feed:
        """Return the ids from ``start`` up to, but not including, ``end``."""
        piece = slice(start, end)
        wanted = self.wanted[piece]
        return Feed(self.tokens[piece], self.positions[piece], self.sequences[piece], wanted, sum(wanted))


class Batch:
    """llama.cpp's batch structure, allocated once.

    Args:
        size: maximum number of ids.
        sequences: maximum number of sequences per id.
    """

    def __init__(self, size: int, sequences: int) -> None:
        self._batch = lib.llama_batch_init(size, 0, sequences)
        # Arrays accept a whole list at once, and each access to a pointer field would create an object.
        self._tokens, self._positions = _array(self._batch.token, size), _array(self._batch.pos, size)
        self._counts, self._wanted = _array(self._batch.n_seq_id, size), _array(self._batch.logits, size)
        self._sequences = [_array(self._batch.seq_id[index], sequences) for index in range(size)]

    def filled(self, feed: Feed) -> Any:
        """Fill the structure with ``feed`` and return it; the batch owns it."""
        size = len(feed)
        self._batch.n_tokens = size
        self._tokens[:size], self._positions[:size] = feed.tokens, feed.positions
        self._counts[:size], self._wanted[:size] = list(map(len, feed.sequences)), feed.wanted
        for into, sequences in zip(self._sequences, feed.sequences, strict=False):
            into[: len(sequences)] = sequences
        return self._batch

    def close(self) -> None:
        """Free the structure."""
        lib.llama_batch_free(self._batch)


def leaf_paths(draft: Draft) -> list[list[int]]:
    """Return the nodes from the root to each leaf, leaves in draft order."""
    inner = set(draft.parents)
    paths: list[list[int]] = []
    for leaf in range(len(draft)):
        if leaf in inner:
            continue
        path: list[int] = []
        node = leaf
        while node != ROOT:
            path.append(node)
            node = draft.parents[node]
        paths.append(path[::-1])
    return paths


def _array(pointer: Any, size: int) -> Any:
    """Return the memory behind a pointer as an array."""
    return ctypes.cast(pointer, ctypes.POINTER(pointer._type_ * size)).contents
