"""Cost curves: what they say between and beyond what was measured, and measuring them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding import cost
from redraft.decoding.cost import CostCurve
from tests.fakes import RandomModel


def test_lines_between_and_beyond() -> None:
    curve = CostCurve((1, 2, 4), (1.0, 2.0, 6.0))
    assert [curve(n) for n in (1, 2, 3, 4, 5)] == [1.0, 2.0, 4.0, 6.0, 8.0]


@given(st.lists(st.floats(0.001, 10), min_size=2, max_size=6))
def test_padding(seconds: list[float]) -> None:
    curve = CostCurve(tuple(2**n for n in range(len(seconds))), tuple(seconds))
    found = [curve(n) for n in range(1, 80)]
    assert found == pytest.approx(sorted(found))
    assert found[0] == pytest.approx(min(seconds))
    for new in range(1, 80):
        padded = curve.padded(new)
        assert curve.padded(padded) == padded >= new
        assert padded == new or curve.unpadded(padded) < curve.unpadded(new)
    if seconds == sorted(seconds):
        assert [curve.padded(n) for n in range(1, 80)] == [*range(1, 80)]


def test_padding_buys_at_dip() -> None:
    curve = CostCurve((1, 2, 3, 4, 5, 6), (1.0, 1.9, 2.5, 2.0, 3.0, 2.99))
    assert [curve.padded(n) for n in range(1, 9)] == [1, 2, 4, 4, 5, 6, 7, 8]
    assert [curve(n) for n in range(1, 7)] == [1.0, 1.9, 2.0, 2.0, 2.99, 2.99]


@pytest.mark.parametrize(
    ("sizes", "seconds"), [((1,), (1.0,)), ((2, 3), (1.0, 2.0)), ((1, 1), (1.0, 2.0)), ((1, 2), (1.0,))]
)
def test_what_is_no_curve_is_refused(sizes: tuple[int, ...], seconds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="cost curve"):
        CostCurve(sizes, seconds)


@pytest.mark.parametrize("length", [8, 40, 512])
def test_measuring_stays_within_context(length: int) -> None:
    model = RandomModel()
    model.context_length = length
    slot = model.open_slot()
    assert len(cost.sample(model, slot)) == len(cost.sizes_for(model))
    assert cost.sizes_for(model)[:2] == (1, 2)
    assert max(len(each.prefix) + len(each.draft) for each in model.requests) <= length


def test_sample_has_pass_of_every_size() -> None:
    model = RandomModel()
    slot = model.open_slot()
    model.requests.clear()
    assert len(cost.sample(model, slot)) == len(cost.SIZES)
    assert [len(each.draft) + 1 for each in model.requests[1::2]] == list(cost.SIZES)


def test_curves_of_samples() -> None:
    samples = [[1.0, 5.0], [3.0, 4.0], [2.0, 9.0]]
    assert cost.curve(samples).seconds == (2.0, 5.0)
    assert cost.least(samples).seconds == (1.0, 4.0)


@pytest.mark.parametrize(("seconds", "needed"), [((1.0, 1.0), 1), ((1.0, 7.7), 7), ((1.0, 8.0), 8), ((1.0, 30.0), 30)])
def test_how_many_drafted_tokens_must_be_accepted(seconds: tuple[float, float], needed: int) -> None:
    curve = CostCurve((1, 17), seconds)
    assert curve.break_even(16) == needed
    assert needed * curve(1) <= curve(17) < (needed + 1) * curve(1)
