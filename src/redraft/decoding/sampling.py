"""Sampling: turn a row into a distribution by temperature and nucleus, and draw a token from it.

A drafter and a rule that sample share one `Sampler`. With two generators of the same seed, both would draw the same
numbers, and the draft would not be independent of the test that decides about it.
"""

from __future__ import annotations

import math
import random

from redraft.decoding.types import Distribution, Rows

#: More than any vocabulary has.
_ALL = 1 << 30
#: How many of the best tokens are looked at first, where a few may be the whole nucleus.
_FEW = 64


class Sampler:
    """Temperature, nucleus and a random number generator.

    Args:
        temperature: what log-probabilities are divided by, 0 or more; 0 means the most probable token, always.
        top_p: in [0, 1]; tokens are drawn from the nucleus, the fewest most probable tokens that have this mass
            together (Holtzman et al. 2020, "The curious case of neural text degeneration"); at least one, 1 for all.
        seed: of the generator; the same seed gives the same numbers.
    """

    def __init__(self, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0) -> None:
        self._temperature, self._top_p = temperature, top_p
        self._random = random.Random(seed)

    def distribution(self, rows: Rows, node: int) -> Distribution:
        """What the token after ``node`` is drawn from: the probabilities add up to 1, zeros are left out.

        A whole vocabulary takes time: 8 ms for 16,000 tokens where a nucleus at temperature 1 takes 0.2 ms.
        """
        if self._temperature == 0:
            return {rows.argmax(node): 1.0}
        # Another temperature needs the whole row for its normaliser; at 1 the row's own holds.
        asked = _FEW if self._temperature == 1 and self._top_p < 1 else _ALL
        while True:
            best = rows.top_k(node, asked)
            weights = [math.exp((log - best[0][1]) / self._temperature) for _token, log in best]
            total = math.exp(-best[0][1]) if self._temperature == 1 else math.fsum(weights)
            size = self._nucleus(weights, total)
            if size is not None or len(best) < asked:
                break
            asked *= 8
        kept = {token: weight for (token, _log), weight in zip(best[:size], weights[:size], strict=True) if weight}
        mass = math.fsum(kept.values())
        return {token: weight / mass for token, weight in kept.items()}

    def _nucleus(self, weights: list[float], total: float) -> int | None:
        """How many of the descending weights are the nucleus; None where they do not reach its mass."""
        if self._top_p == 1:
            return None  # all of them, however their sum is rounded
        mass = 0.0
        for size, weight in enumerate(weights, 1):
            mass += weight
            if mass >= self._top_p * total:
                return size
        return None

    def draw(self, distribution: Distribution) -> int:
        """A token; weights that do not add up to 1 are taken in proportion."""
        return self._random.choices(list(distribution), weights=list(distribution.values()))[0]

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
