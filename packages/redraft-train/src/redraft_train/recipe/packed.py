"""Compact storage of examples in memory and in files; millions of Python lists would fill the memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft_train.recipe.examples import Example


class Packed(Sequence[Example]):
    """A sequence of examples.

    Attributes:
        ids: (total,) uint16, all examples concatenated.
        ends: (n,) end of each in ``ids``.
        starts: (n,) position of each example's first target.
    """

    def __init__(self, ids: NDArray[np.uint16], ends: NDArray[np.int64], starts: NDArray[np.uint16]) -> None:
        self.ids, self.ends, self.starts = ids, ends, starts

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Packed:
        """Pack examples; no id may be above 65,535."""
        given = list(examples)
        lengths = [len(ids) for ids, _ in given]
        ids = np.fromiter((number for ids, _ in given for number in ids), np.uint16, sum(lengths))
        return cls(ids, np.cumsum(lengths, dtype=np.int64), np.array([start for _, start in given], np.uint16))

    @classmethod
    def joined(cls, parts: Sequence[Packed]) -> Packed:
        """Concatenate several sequences."""
        before = np.cumsum([0, *(len(part.ids) for part in parts[:-1])])
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.ends + begin for part, begin in zip(parts, before, strict=True)]),
            np.concatenate([part.starts for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, place: int) -> Example:  # type: ignore[override]  # one at a time is all that is asked for
        place = range(len(self))[place]
        begin = self.ends[place - 1] if place else 0
        return self.ids[begin : self.ends[place]].tolist(), int(self.starts[place])

    def save(self, file: Path) -> None:
        """Write the examples, atomically."""
        part = file.with_suffix(".part")
        with part.open("wb") as out:
            np.savez(out, ids=self.ids, ends=self.ends, starts=self.starts)
        part.replace(file)

    @classmethod
    def load(cls, file: Path) -> Packed:
        """Load examples written by `save`."""
        with np.load(file) as arrays:
            return cls(arrays["ids"], arrays["ends"], arrays["starts"])
