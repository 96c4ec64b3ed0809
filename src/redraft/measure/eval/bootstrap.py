"""Confidence intervals by bootstrap over segments (Koehn 2004).

A figure of a whole set is a function of sums over its segments: BLEU of counts of n-grams, NE of erased and final
tokens, a mean of values and ones.  So a resample is the sums over as many segments, drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from redraft.errors import OptionError

Array: TypeAlias = NDArray[np.float64]
#: A figure of a set from the sums (k,) over its segments.
Statistic: TypeAlias = Callable[[Array], float]


class Interval(NamedTuple):
    """The bounds of a confidence interval."""

    low: float
    high: float


def interval(
    per_segment: ArrayLike, statistic: Statistic, *, seed: int = 0, samples: int = 1000, level: float = 0.95
) -> Interval:
    """The interval that holds the middle ``level`` of the statistic over resamples.

    Args:
        per_segment: (n, k) what each of n segments adds to each of k sums.
        statistic: the figure, from the sums.
        seed: the same seed draws the same segments, so intervals of several lines are of the same resamples.
        samples: how many resamples.
        level: between 0 and 1.

    Raises:
        OptionError: there is no segment, or a number is out of its range.
    """
    values = _table(per_segment)
    if samples < 1:
        raise OptionError(f"samples must be a whole number of 1 or more, not {samples!r}")
    if not 0 < level < 1:
        raise OptionError(f"level must be a number between 0 and 1, not {level!r}")
    random = np.random.default_rng(seed)
    number = len(values)
    found = [
        statistic(np.bincount(random.integers(number, size=number), minlength=number) @ values) for _ in range(samples)
    ]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def difference(
    first: ArrayLike,
    second: ArrayLike,
    statistic: Statistic,
    *,
    seed: int = 0,
    samples: int = 1000,
    level: float = 0.95,
) -> Interval:
    """The interval of ``statistic(first) - statistic(second)``, paired: every resample has the same segments of both.

    Arguments and errors as of `interval`; ``first`` and ``second`` have the same shape.
    """
    one, other = _table(first), _table(second)
    if one.shape != other.shape:
        raise OptionError(f"first and second must have the same shape, not {one.shape} and {other.shape}")
    width = one.shape[1]
    return interval(
        np.hstack([one, other]),
        lambda sums: statistic(sums[:width]) - statistic(sums[width:]),
        seed=seed,
        samples=samples,
        level=level,
    )


def _table(per_segment: ArrayLike) -> Array:
    values = np.asarray(per_segment, dtype=np.float64)
    if values.ndim != 2 or not len(values):
        raise OptionError(f"per_segment must be a table with a row for each segment, not of shape {values.shape}")
    return values


def ratio(sums: Array) -> float:
    """The first sum over the second, 0 where that is 0: NE, tokens per second, a mean of (value, 1)."""
    return float(sums[0] / sums[1]) if sums[1] else 0.0


def speedup(sums: Array) -> float:
    """Of (tokens, seconds, tokens of the baseline, its seconds): the ratio of tokens per second; 0 if undefined."""
    return float(sums[0] * sums[3] / (sums[1] * sums[2])) if sums[1] and sums[2] else 0.0
