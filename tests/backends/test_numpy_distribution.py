"""Whole distributions as arrays: as mappings, drawn from, subtracted, cut to a nucleus and to possible tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyDistribution
from redraft.decoding.methods.sampling import residual

weights = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5]), min_size=2, max_size=9).filter(any)


def made(*values: float) -> NumpyDistribution:
    return NumpyDistribution(np.array(values))


@given(weights)
def test_mapping_without_zeros(values: list[float]) -> None:
    found, total = made(*values), sum(values)
    assert dict(found) == pytest.approx({token: value / total for token, value in enumerate(values) if value})
    assert len(found) == sum(map(bool, values))


@given(weights, st.floats(0, 1, exclude_max=True))
def test_drawn_token_is_possible_and_holds_the_number(values: list[float], uniform: float) -> None:
    found = made(*values)
    token = found.draw(uniform)
    assert token in found
    before = sum(values[:token]) / sum(values)
    assert before - 1e-9 <= uniform <= before + found[token] + 1e-9


@given(weights, weights)
def test_residual_is_that_of_mappings(first: list[float], second: list[float]) -> None:
    size = max(len(first), len(second))
    p, q = (made(*values, *[0.0] * (size - len(values))) for values in (first, second))
    plain = residual(dict(p), dict(q))
    expected = {token: value / sum(plain.values()) for token, value in plain.items()}
    for other in (q, dict(q)):
        found = residual(p, other)
        for token in range(size):  # rounding may leave less than a token needs
            assert found.get(token, 0.0) == pytest.approx(expected.get(token, 0.0), abs=1e-9)


def test_nothing_left() -> None:
    found = made(0.5, 0.5)
    assert residual(found, found) is found
    assert found.without(None) is found and found.without(frozenset({0, 1})) is found


def test_some_tokens() -> None:
    found = made(0.1, 0.2, 0.3, 0.4)
    assert dict(found.without(None, frozenset({1, 2}))) == pytest.approx({1: 0.4, 2: 0.6})
    assert dict(found.without(frozenset({2, 3}), frozenset({3}))) == pytest.approx({0: 1 / 7, 1: 2 / 7, 3: 4 / 7})
    assert found.nucleus(0.7) == pytest.approx({3: 4 / 7, 2: 3 / 7})
    assert found.nucleus(0.0) == {3: 1.0}
