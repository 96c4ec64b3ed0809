"""Metrics of latency: their formulas, by hand and by properties that they must have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft_bench.eval.latency import dal, laal

DELAYS = st.lists(st.floats(0, 50), min_size=1, max_size=20).map(sorted)


def wait(k: int, length: int) -> list[float]:
    """The delays of a translation that stays k words behind a source as long as itself."""
    return [float(min(k + index, length)) for index in range(length)]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_who_waits_for_k_words_lags_by_k_words(k: int) -> None:
    delays = wait(k, 10)
    assert laal(delays, 10, 10) == dal(delays, 10) == pytest.approx(k)


def test_who_waits_for_end_lags_by_source() -> None:
    delays = [6.0] * 4
    assert laal(delays, 6, 4) == 6
    assert dal(delays, 6) == pytest.approx(6)


def test_golden_case() -> None:
    assert laal([1, 2, 2, 3], 3, 4) == 0.875
    assert laal([1.1, 2.2, 2.2, 3.1], 3, 4) == pytest.approx(1.025, abs=1e-15)


def test_laal_ends_with_source() -> None:
    assert laal([2, 4, 4, 4], 4, 4) == (2 + 3) / 2
    assert laal([2, 3, 3, 3], 4, 4) == (2 + 2 + 1 + 0) / 4


def test_laal_of_long_translations() -> None:
    delays = [1.0, 2, 2, 3, 3, 4, 4, 4]
    assert laal(delays, 4, 4) == pytest.approx((1 + 1.5 + 1 + 1.5 + 1 + 1.5) / 6)


def test_dal_lets_nothing_be_shown_faster_than_pace() -> None:
    # Pace 1: shown at 3, 4, 5, 6 though all was there at 3.
    assert dal([3, 3, 3, 3], 4) == 3
    assert dal([1, 1, 4, 4], 4) == pytest.approx((1 + (2 - 1) + (4 - 2) + (5 - 3)) / 4)


def test_what_is_shown_after_end_counts_in_full() -> None:
    assert laal([9, 9], 4, 2) == 9
    assert dal([9.0, 9.0], 4) == 9


@given(DELAYS, st.floats(0.5, 60), st.floats(0, 10))
def test_what_comes_later_lags_more(delays: list[float], source: float, later: float) -> None:
    moved = [delay + later for delay in delays]
    first, second = dal(delays, source), dal(moved, source)
    assert first is not None
    assert second == pytest.approx(first + later)
