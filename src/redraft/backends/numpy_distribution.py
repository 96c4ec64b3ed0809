"""`redraft.decoding.types.WholeDistribution` as a NumPy array: a probability for every token."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.decoding.types import Distribution, WholeDistribution

Vector = NDArray[np.float64]


class NumpyDistribution(WholeDistribution):
    """Probabilities of all tokens.

    Args:
        weights: (vocabulary,) weights, at least 0, of which one is above 0; they are scaled to a sum of 1.
    """

    def __init__(self, weights: Vector) -> None:
        self._p = weights / weights.sum()

    @classmethod
    def of(cls, logits: NDArray[Any], temperature: float) -> NumpyDistribution:
        """Return softmax(logits / temperature), computed in 64 bits, for a temperature above 0."""
        with np.errstate(over="ignore"):  # a difference over a tiny temperature is minus infinity
            return cls(np.exp((logits - logits.max()).astype(np.float64) / temperature))

    def __getitem__(self, token: int) -> float:
        found = float(self._p[token])
        if not found:
            raise KeyError(token)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._p).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._p))

    def draw(self, uniform: float) -> int:
        """Return the first token up to which, by id, the probabilities add up to more than ``uniform``, below 1."""
        masses = self._p.cumsum()
        return int(np.searchsorted(masses, uniform * masses[-1], side="right"))

    def minus(self, other: Distribution) -> Distribution:
        """Return max(0, p - q), scaled; these probabilities themselves if nothing is left."""
        if isinstance(other, NumpyDistribution):
            rest = np.maximum(self._p - other._p, 0.0)
        else:
            rest = self._p.copy()
            for token, probability in other.items():
                rest[token] = max(0.0, rest[token] - probability)
        return NumpyDistribution(rest) if rest.any() else self

    def nucleus(self, mass: float) -> Distribution:
        """Return the smallest set of most probable tokens with a mass, lower ids first among equals, scaled."""
        order = np.argsort(-self._p, kind="stable")
        size = int(np.searchsorted(self._p[order].cumsum(), mass)) + 1
        kept = order[: min(size, len(self))]
        weights = self._p[kept] / self._p[kept].sum()
        return dict(zip(kept.tolist(), weights.tolist(), strict=True))

    def only(self, tokens: frozenset[int]) -> WholeDistribution:
        """Return the distribution among some tokens; this one if none of them is possible."""
        rest = np.zeros_like(self._p)
        places = _places(tokens)
        rest[places] = self._p[places]
        return NumpyDistribution(rest) if rest.any() else self

    def without(self, tokens: frozenset[int], but: frozenset[int] = frozenset()) -> WholeDistribution:
        """Return the distribution without some tokens, except those in ``but``; this one if nothing is left."""
        if not tokens:
            return self
        rest, kept = self._p.copy(), _places(but)
        rest[_places(tokens)] = 0.0
        rest[kept] = self._p[kept]
        return NumpyDistribution(rest) if rest.any() else self


@lru_cache(maxsize=64)  # those of a language's script are asked for in every row
def _places(tokens: frozenset[int]) -> NDArray[np.intp]:
    return np.fromiter(tokens, np.intp, len(tokens))
