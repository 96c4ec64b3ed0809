"""Options that say what is shown: their values, and defaults of a method."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

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


def test_defaults_of_method() -> None:
    for defaults in ({"agree": 11}, {"agre": 2}):
        with pytest.raises(OptionError):
            replace(get_method("ar"), defaults=defaults)
    method = replace(get_method("ar"), defaults={"agree": 3, "max_tokens": 9})
    assert method.check({"agree": 4}) == {**get_method("ar").check({}), "agree": 4, "max_tokens": 9}
