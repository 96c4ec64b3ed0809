"""Cost curves between and beyond the known sizes."""

from __future__ import annotations

import pytest

from redraft.decoding.backend import CostCurve


def test_lines_between_and_beyond() -> None:
    curve = CostCurve((1, 2, 4), (1.0, 2.0, 6.0))
    assert [curve(n) for n in (1, 2, 3, 4, 5)] == [1.0, 2.0, 4.0, 6.0, 8.0]


def test_noise_at_the_end_makes_no_long_pass_cheap() -> None:
    curve = CostCurve((1, 2, 4), (1.0, 3.0, 2.0))
    assert [curve(n) for n in (3, 4, 8, 400)] == [2.5, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("sizes", "seconds"), [((1,), (1.0,)), ((2, 3), (1.0, 2.0)), ((1, 1), (1.0, 2.0)), ((1, 2), (1.0,))]
)
def test_what_is_no_curve_is_refused(sizes: tuple[int, ...], seconds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="cost curve"):
        CostCurve(sizes, seconds)


@pytest.mark.parametrize(("seconds", "needed"), [((1.0, 1.0), 1), ((1.0, 7.7), 7), ((1.0, 8.0), 8), ((1.0, 30.0), 30)])
def test_how_many_drafted_tokens_must_be_accepted(seconds: tuple[float, float], needed: int) -> None:
    curve = CostCurve((1, 17), seconds)
    assert curve.break_even(16) == needed
    assert needed * curve(1) <= curve(17) < (needed + 1) * curve(1)
