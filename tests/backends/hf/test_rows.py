"""Rows over a torch matrix agree with NumPy's rows over the same matrix, ties and masks included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft.backends.hf.base import TorchRows  # noqa: E402
from redraft.backends.numpy_rows import NumpyRows  # noqa: E402
from redraft.decoding.types import ROOT, top_k  # noqa: E402

#: Whole numbers, so that there are ties; some impossible.
values = st.one_of(st.integers(-8, 8).map(lambda n: 5.0 * n), st.just(-math.inf))
tables = st.integers(1, 12).flatmap(
    lambda width: st.lists(
        st.lists(values, min_size=width, max_size=width).filter(lambda row: max(row) > -math.inf),
        min_size=1,
        max_size=4,
    )
)


@given(tables, st.integers(1, 15), st.data())
def test_as_numpy(table: list[list[float]], k: int, data: st.DataObject) -> None:
    matrix = np.array(table, np.float32)
    root = data.draw(st.integers(0, len(table) - 1))
    ours, theirs = TorchRows(torch.from_numpy(matrix), root), NumpyRows(matrix, root)
    for node in range(-1 - root, len(table) - root - 1):
        assert ours.argmax(node) == theirs.argmax(node)
        assert ours.best(node, k) == theirs.best(node, k)
        assert ours.entropy(node) == pytest.approx(theirs.entropy(node), abs=1e-5)
        best, expected = top_k(ours, node, k), top_k(theirs, node, k)
        assert [token for token, _log in best] == [token for token, _log in expected]
        assert [log for _token, log in best] == pytest.approx([log for _token, log in expected], abs=1e-5)
        for token in range(matrix.shape[1]):
            assert ours.logprob(node, token) == pytest.approx(theirs.logprob(node, token), abs=1e-5)


def test_lowest_id_among_equals_in_16_bits() -> None:
    rows = TorchRows(torch.tensor([[1.0, 3.001, 3.0, 3.002, 2.0]]).bfloat16(), 0)
    assert rows.argmax(ROOT) == 1
    assert [token for token, _log in top_k(rows, ROOT, 2)] == [1, 2]
    assert rows.logprob(ROOT, 1) == rows.logprob(ROOT, 3)


def test_all_possible_where_more_are_asked_for() -> None:
    rows = TorchRows(torch.tensor([[1.0, 2.0, -math.inf]]), 0)
    assert [token for token, _log in top_k(rows, ROOT, 99)] == [1, 0]


def test_node_that_was_not_asked_for() -> None:
    with pytest.raises(IndexError):
        TorchRows(torch.zeros(2, 3), 0).argmax(1)
