"""Metrics of latency: their formulas, by hand and by properties that they must have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft_bench.eval.latency import al, ap, atd, dal, laal

DELAYS = st.lists(st.floats(0, 50), min_size=1, max_size=20).map(sorted)


def wait(k: int, length: int) -> list[float]:
    """The delays of a translation that stays k words behind a source as long as itself."""
    return [float(min(k + index, length)) for index in range(length)]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_who_waits_for_k_words_lags_by_k_words(k: int) -> None:
    delays = wait(k, 10)
    assert al(delays, 10, 10) == laal(delays, 10, 10) == dal(delays, 10) == pytest.approx(k)


def test_who_waits_for_end_lags_by_source() -> None:
    delays = [6.0] * 4
    assert al(delays, 6, 4) == laal(delays, 6, 4) == 6
    assert dal(delays, 6) == pytest.approx(6)
    assert ap(delays, 6, 4) == 1
    assert atd(delays) == pytest.approx((7 - 1 + 8 - 2 + 9 - 3 + 10 - 4) / 4)


def test_golden_case() -> None:
    assert laal([1, 2, 2, 3], 3, 4) == 0.875
    assert laal([1.1, 2.2, 2.2, 3.1], 3, 4) == pytest.approx(1.025, abs=1e-15)


def test_al_ends_with_source() -> None:
    assert al([2, 4, 4, 4], 4, 4) == (2 + 3) / 2
    assert al([2, 3, 3, 3], 4, 4) == (2 + 2 + 1 + 0) / 4


def test_al_and_laal_of_long_translations() -> None:
    delays = [1.0, 2, 2, 3, 3, 4, 4, 4]
    assert al(delays, 4, 4) == pytest.approx((1 + 1 + 0 + 0 - 1 - 1) / 6)
    assert laal(delays, 4, 4) == pytest.approx((1 + 1.5 + 1 + 1.5 + 1 + 1.5) / 6)


def test_dal_lets_nothing_be_shown_faster_than_pace() -> None:
    # Pace 1: shown at 3, 4, 5, 6 though all was there at 3.
    assert dal([3, 3, 3, 3], 4) == 3
    assert dal([1, 1, 4, 4], 4) == pytest.approx((1 + (2 - 1) + (4 - 2) + (5 - 3)) / 4)


def test_what_is_shown_after_end_counts_in_full() -> None:
    assert al([9, 9], 4, 2) == laal([9, 9], 4, 2) == 9
    assert ap([8, 8], 4, 2) == 2
    assert dal([9.0, 9.0], 4) == 9


def test_atd_answers_token_by_token() -> None:
    assert atd([1, 2, 3]) == 1
    # Two tokens in the first chunk: the second answers nothing later than what was read, the third token waits.
    assert atd([1, 1, 2]) == pytest.approx(((2 - 1) + (3 - 1) + (4 - 2)) / 3)


def test_atd_of_speech_counts_tokens_of_fixed_length() -> None:
    # Tokens of 0.3 s end at 0.3, 0.6, 0.9; three target tokens appear at once at 0.9.
    assert atd([0.9, 0.9, 0.9], source_unit=0.3, target_unit=0.0) == pytest.approx((0.6 + 0.3 + 0) / 3)
    # The last token of a chunk is short: 0.3, 0.5.
    assert atd([0.5, 0.5], source_unit=0.3, target_unit=0.0) == pytest.approx((0.2 + 0) / 2)


def test_atd_is_computation_aware_by_when_tokens_are_shown() -> None:
    assert atd([0.3, 0.6], [0.4, 0.8], source_unit=0.3, target_unit=0.0) == pytest.approx((0.1 + 0.2) / 2)
    with pytest.raises(ValueError, match="zip"):
        atd([1, 2], [1])


@given(DELAYS, st.floats(0.5, 60), st.integers(1, 30))
def test_laal_is_at_least_al(delays: list[float], source: float, reference: int) -> None:
    lag, adaptive = al(delays, source, reference), laal(delays, source, reference)
    assert lag is not None and adaptive is not None
    assert adaptive >= lag - 1e-9
    if len(delays) <= reference:
        assert adaptive == lag


@given(DELAYS, st.floats(0.5, 60), st.floats(0, 10))
def test_what_comes_later_lags_more(delays: list[float], source: float, later: float) -> None:
    moved = [delay + later for delay in delays]
    first, second = dal(delays, source), dal(moved, source)
    assert first is not None
    assert second == pytest.approx(first + later)
    shown, before = atd(delays, moved, target_unit=0.0), atd(delays, target_unit=0.0)
    assert before is not None
    assert shown == pytest.approx(before + later)
