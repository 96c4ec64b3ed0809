"""Flicker metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.decoding.types import common_prefix


@dataclass(slots=True)
class Erasure:
    """Normalized erasure, pooled over a set (Arivazhagan et al. 2020; SSBD v2, section 4.1).

    For one utterance with outputs o_1 .. o_n:  NE = sum_i (|o_{i-1}| - |LCP(o_{i-1}, o_i)|) / |o_n|, with lengths in
    tokens.  Pooled means that erased tokens and final lengths are summed over utterances before dividing, so longer
    ones have more weight.
    """

    erased: int = 0
    final: int = 0

    def step(self, before: Sequence[int], after: Sequence[int]) -> int:
        """Count one change of an output; return the number of erased tokens."""
        erased = len(before) - common_prefix(before, after)
        self.erased += erased
        return erased

    @property
    def value(self) -> float:
        """NE; 0 when nothing was shown."""
        return self.erased / self.final if self.final else 0.0
