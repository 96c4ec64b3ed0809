"""Confidence intervals: known intervals of means, paired differences, seeds and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

from redraft_bench.eval.bootstrap import difference, interval, ratio, speedup

RANDOM = np.random.default_rng(7)
VALUES = np.column_stack([RANDOM.normal(5.0, 2.0, 400), np.ones(400)])


def test_interval_of_mean_is_that_of_theory() -> None:
    mean, error = VALUES[:, 0].mean(), VALUES[:, 0].std() / np.sqrt(400)
    assert interval(VALUES, ratio) == pytest.approx((mean - 1.96 * error, mean + 1.96 * error), abs=0.03)


def test_seed_of_intervals() -> None:
    assert interval(VALUES, ratio, seed=1) == interval(VALUES, ratio, seed=1) != interval(VALUES, ratio, seed=2)


def test_paired_difference() -> None:
    better, alone = VALUES.copy(), interval(VALUES, ratio)
    better[:, 0] += 0.5
    assert difference(better, VALUES, ratio) == pytest.approx((0.5, 0.5))
    gain = RANDOM.normal(0.5, 0.5, 400)
    better[:, 0] = VALUES[:, 0] + gain
    low, high = difference(better, VALUES, ratio)
    assert 0 < low < gain.mean() < high
    assert high - low < (alone.high - alone.low) / 2


def test_ratios_of_sums() -> None:
    assert ratio(np.array([1.0, 4.0])) == 0.25
    assert speedup(np.array([100.0, 2.0, 90.0, 3.6])) == pytest.approx(2.0)
    assert ratio(np.array([1.0, 0.0])) == speedup(np.array([1.0, 0.0, 1.0, 1.0])) == 0.0
