"""Values of a display, and its label."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.display import Display
from redraft.decoding.methods import get_method
from redraft.errors import OptionError


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(("agree", each, "agree must be a whole number from 1 to 10, not") for each in (0, 11, -1, 1.5, True, "2")),
        *(("mask_k", each, "mask_k must be a whole number from 0 to 100, not") for each in (-1, 101, 1.5, True, None)),
        *(("plain", each, "plain must be 0 or 1, not") for each in (-1, 2, 0.5, "on", None)),
        *(
            ("first_sight", each, "first_sight must be a number from 0 to 1, not")
            for each in (-0.1, 1.1, math.nan, math.inf, True, "0", None)
        ),
    ],
)
def test_value_out_of_range(field: str, value: Any, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        get_method("ar").check({field: value})
    assert str(raised.value) == f"{message} {value!r}"


@given(st.builds(Display, st.integers(1, 10), st.floats(0, 1), st.integers(0, 100), st.booleans()))
def test_display_of_options(display: Display) -> None:
    for method in ("ar", "redraft"):
        assert Display.of(get_method(method).check(dataclasses.asdict(display))) == display
        assert Display.of(get_method(method).check({})) == get_method(method).display
