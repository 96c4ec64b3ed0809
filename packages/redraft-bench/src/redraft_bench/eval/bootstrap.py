"""Confidence intervals by bootstrap over segments (Koehn 2004).

A corpus metric is a function of sums over segments: BLEU of n-gram counts, NE of erased and final tokens, a mean of
values and counts.  A resample sums as many segments, drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
#: Computes a metric from the (k,) sums over segments.
Statistic: TypeAlias = Callable[[Array], float]


#: Number of resamples.
SAMPLES = 1000


class Interval(NamedTuple):
    """Bounds of a 95% confidence interval."""

    low: float
    high: float


def interval(per_segment: ArrayLike, statistic: Statistic, *, seed: int = 0) -> Interval:
    """Return the interval that contains the middle 95% of the statistic over resamples.

    Args:
        per_segment: (n, k) contribution of each of n segments to each of k sums.
        statistic: computes the metric from the sums.
        seed: random seed; calls with the same seed use the same resamples.
    """
    values = np.asarray(per_segment, dtype=np.float64)
    random = np.random.default_rng(seed)
    number = len(values)
    found = [
        statistic(np.bincount(random.integers(number, size=number), minlength=number) @ values) for _ in range(SAMPLES)
    ]
    return _middle(found)


def percentile_interval(per_segment: Sequence[Array], share: float, *, seed: int = 0) -> Interval:
    """Return the interval of a percentile (``share`` in percent) of all values, by bootstrap over segments."""
    random, number = np.random.default_rng(seed), len(per_segment)
    found = [
        np.percentile(np.concatenate([per_segment[n] for n in random.integers(number, size=number)]), share)
        for _ in range(SAMPLES)
    ]
    return _middle(found)


def difference(first: ArrayLike, second: ArrayLike, statistic: Statistic, *, seed: int = 0) -> Interval:
    """Return the interval of ``statistic(first) - statistic(second)`` by paired bootstrap.

    ``first`` and ``second`` have the same shape, and each resample draws the same segments of both.  The other
    arguments are those of `interval`.
    """
    one, other = np.asarray(first), np.asarray(second)
    width = one.shape[1]
    return interval(
        np.hstack([one, other]),
        lambda sums: statistic(sums[:width]) - statistic(sums[width:]),
        seed=seed,
    )


def _middle(found: Sequence[float]) -> Interval:
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(float(low), float(high))


def ratio(sums: Array) -> float:
    """Return the first sum divided by the second, 0 if undefined: NE, tokens per second, or the mean of (value, 1)."""
    return float(sums[0] / sums[1]) if sums[1] else 0.0


def speedup(sums: Array) -> float:
    """Return the ratio of tokens per second, from (tokens, seconds, baseline tokens, baseline seconds).

    0 if undefined.
    """
    return float(sums[0] * sums[3] / (sums[1] * sums[2])) if sums[1] and sums[2] else 0.0
