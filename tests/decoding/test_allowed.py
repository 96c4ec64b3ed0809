"""Rows without forbidden tokens agree with logits of minus infinity, except that nothing is scaled."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.allowed import AllowedRows
from redraft.decoding.types import ROOT

SIZE = 40


@given(st.integers(0, 1000), st.frozensets(st.integers(0, SIZE - 1), max_size=SIZE - 1), st.integers(1, SIZE + 3))
def test_the_best_tokens_are_the_best_allowed_ones(seed: int, forbidden: frozenset[int], k: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(2, SIZE)).astype(np.float32)
    banned = logits.copy()
    banned[:, list(forbidden)] = -np.inf
    rows, expected = AllowedRows(NumpyRows(logits, 0), forbidden), NumpyRows(banned, 0)
    for node in (ROOT, 0):
        assert rows.argmax(node) == expected.argmax(node)
        assert rows.best(node, k) == expected.best(node, min(k, SIZE - len(forbidden)))


def test_probabilities_stay_as_they_are() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]], np.float32)), 0)
    rows = AllowedRows(plain, frozenset({0}))
    assert rows.top_k(ROOT, 2) == [(1, plain.logprob(ROOT, 1)), (2, plain.logprob(ROOT, 2))]
    assert rows.logprob(ROOT, 0) == -math.inf
    assert rows.logprob(ROOT, 2) == plain.logprob(ROOT, 2)
    assert rows.entropy(ROOT) == plain.entropy(ROOT)
