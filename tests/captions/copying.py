"""A model that copies its source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fakes import END, RandomModel


class Copying(RandomModel):
    """Repeats the source, byte by byte; with doubt above 1, it is less sure of it."""

    doubt = 1.0

    def __init__(self, before: bytes = b"") -> None:
        super().__init__(vocabulary=128)
        self.before = before

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        source, output = bytes(ids).split(b">de")
        source = self.before + source
        row = np.full(self.vocabulary, -50.0)
        row[source[len(output)] if len(output) < len(source) else END] = 0.0
        return row / self.doubt

    def tokenize(self, text: str, *, special: bool = False, start: bool = False) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token])
