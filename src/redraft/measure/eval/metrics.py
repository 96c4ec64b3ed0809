"""Metrics of flicker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.decoding.types import common_prefix


@dataclass(slots=True)
class Erasure:
    """Normalized erasure, pooled over a set (Arivazhagan et al. 2020; section 4.1 of SSBD v2).

    For one utterance with outputs o_1 .. o_n:  NE = sum_i (|o_{i-1}| - |LCP(o_{i-1}, o_i)|) / |o_n|, with lengths in
    tokens.  Pooled means that erased tokens and final lengths are summed over the utterances before dividing, so that
    long ones count more.
    """

    erased: int = 0
    final: int = 0

    def step(self, before: Sequence[int], after: Sequence[int]) -> int:
        """Count one change of an output; returns how many tokens it has erased."""
        erased = len(before) - common_prefix(before, after)
        self.erased += erased
        return erased

    @property
    def value(self) -> float:
        """NE; 0 when nothing was shown."""
        return self.erased / self.final if self.final else 0.0
