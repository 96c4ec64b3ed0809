"""Rows over a matrix of logits, held against the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.types import ROOT, top_k
from tests.fakes import distribution

#: Whole numbers, so that there are ties; far apart, so that a careless exp overflows.
logits = st.lists(st.integers(-40, 40).map(lambda n: 5.0 * n), min_size=1, max_size=12)


def rows_of(*table: list[float], root: int = 0) -> NumpyRows:
    return NumpyRows(np.array(table, np.float32), root)


def log_softmax(row: list[float]) -> list[float]:
    top = max(row)
    normaliser = top + math.log(math.fsum(math.exp(value - top) for value in row))
    return [value - normaliser for value in row]


@given(logits)
def test_probabilities(row: list[float]) -> None:
    rows, expected = rows_of(row), log_softmax(row)
    assert distribution(rows, ROOT) == pytest.approx([math.exp(log) for log in expected], abs=1e-6)
    assert math.fsum(distribution(rows, ROOT)) == pytest.approx(1, abs=1e-6)
    for token, log in enumerate(expected):
        assert rows.logprob(ROOT, token) == pytest.approx(log, rel=1e-6, abs=1e-5)
    assert rows.entropy(ROOT) == pytest.approx(-math.fsum(math.exp(log) * log for log in expected), abs=1e-5)


@given(logits, st.integers(1, 15))
def test_best_first_and_lowest_id_among_equals(row: list[float], k: int) -> None:
    rows = rows_of(row)
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    assert rows.argmax(ROOT) == order[0]
    found = top_k(rows, ROOT, k)
    assert [token for token, _ in found] == order[:k]
    assert rows.best(ROOT, k) == order[:k]
    assert np.array_equal(rows._logits, np.array([row], np.float32))  # the search leaves no trace
    assert [log for _, log in found] == pytest.approx([rows.logprob(ROOT, token) for token, _ in found])


def test_nodes_count_from_root_both_ways() -> None:
    table = np.eye(5)
    rows = NumpyRows(table.astype(np.float32), 2)
    assert [rows.argmax(node) for node in (-3, -2, ROOT, 0, 1)] == [0, 1, 2, 3, 4]
    with pytest.raises(IndexError):
        rows.argmax(2)


def test_rows_of_one_matrix_do_not_mix() -> None:
    rows = rows_of([0.0, 1.0], [3.0, 0.0])
    for _ in range(2):  # the second time from what was kept
        assert rows.logprob(ROOT, 0) == pytest.approx(log_softmax([0, 1])[0])
        assert rows.logprob(0, 0) == pytest.approx(log_softmax([3, 0])[0])


def test_entropy_of_even_and_of_certain() -> None:
    rows = rows_of([2.0] * 8, [500.0] + [0.0] * 7)
    assert rows.entropy(ROOT) == pytest.approx(math.log(8))
    assert rows.entropy(0) == pytest.approx(0, abs=1e-12)


def test_masked_tokens_have_probability_zero() -> None:
    rows = rows_of([1.0, -math.inf, 1.0])
    assert distribution(rows, ROOT) == pytest.approx([0.5, 0.5])
    assert rows.logprob(ROOT, 1) == -math.inf
    assert rows.best(ROOT, 3) == [0, 2]


def test_masked_tokens_add_nothing_to_entropy() -> None:
    assert rows_of([1.0, -math.inf, 1.0]).entropy(ROOT) == pytest.approx(math.log(2))


def test_few_of_many_and_many_of_many() -> None:
    row = np.random.default_rng(1).integers(-20, 20, size=2000).astype(np.float32)
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    for k in (1, 2, 7, 16, 17, 300, 2000, 9999):
        rows = NumpyRows(row[None].copy(), 0)
        assert rows.best(ROOT, k) == order[:k]
        rows._logits.flags.writeable = False
        assert rows.best(ROOT, k) == order[:k]


@pytest.mark.parametrize("shift", [-3000.0, -25.0, 0.0, 65.0, 75.0, 3000.0])
def test_sums_of_large_vocabularies(shift: float) -> None:
    row = np.random.default_rng(2).normal(0, 3, 152_000) + shift
    rows = NumpyRows(row.astype(np.float32)[None], 0)
    logs = rows._logits[0].astype(np.float64)
    logs -= logs.max() + math.log(np.exp(logs - logs.max()).sum())
    assert rows.logprob(ROOT, 5) == pytest.approx(logs[5], abs=1e-5)
    assert rows.entropy(ROOT) == pytest.approx(-float((np.exp(logs) * logs).sum()), abs=1e-5)
