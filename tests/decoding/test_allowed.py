"""Rows without impossible tokens agree with logits of minus infinity, except that nothing is scaled."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.allowed import AllowedRows
from redraft.decoding.selection import Selection
from redraft.decoding.types import ROOT, Draft, Provenance

SIZE = 40
#: As if 1 were "S", 2 "inc", 3 "inn", 4 "inatra", 6 " Tom", 7 "x" and 8 a full stop.
WORDS = frozenset({(1, 2, 3), (1, 4), (0, 5), (6,)})
SPELT = Selection(frozenset({2, 3, 4, 5, 6, 7}), frozenset({1, 2, 3, 4, 5, 7}), frozenset(range(1, 8)), WORDS)


@given(st.integers(0, 1000), st.frozensets(st.integers(0, SIZE - 1), max_size=SIZE - 1), st.integers(1, SIZE + 3))
def test_the_best_tokens_are_the_best_allowed_ones(seed: int, foreign: frozenset[int], k: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(2, SIZE)).astype(np.float32)
    banned = logits.copy()
    banned[:, list(foreign)] = -np.inf
    draft = Draft.chain([SIZE], Provenance.PREVIOUS)
    rows, expected = AllowedRows(NumpyRows(logits, 0), draft, (), Selection(foreign), {}), NumpyRows(banned, 0)
    for node in (ROOT, 0):
        assert rows.argmax(node) == expected.argmax(node)
        assert rows.best(node, k) == expected.best(node, min(k, SIZE - len(foreign)))


def test_probabilities_stay_as_they_are() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]], np.float32)), 0)
    rows = AllowedRows(plain, Draft(), (), Selection(frozenset({0})), {})
    assert rows.top_k(ROOT, 2) == [(1, plain.logprob(ROOT, 1)), (2, plain.logprob(ROOT, 2))]
    assert rows.logprob(ROOT, 0) == -math.inf
    assert rows.logprob(ROOT, 2) == plain.logprob(ROOT, 2)
    assert rows.entropy(ROOT) == plain.entropy(ROOT)


@given(st.integers(0, 1000), st.integers(0, 8), st.integers(1, 12))
def test_a_node_knows_the_path_to_it(seed: int, length: int, k: int) -> None:
    draw = np.random.default_rng(seed)
    output = tuple(draw.integers(0, 8, length).tolist())
    draft = Draft((1, 2, 4, 8), (ROOT, 0, 0, 1), (Provenance.PREVIOUS,) * 4)
    plain = NumpyRows(draw.normal(size=(5, 9)).astype(np.float32), 0)
    rows = AllowedRows(plain, draft, output, SPELT, {})
    for node, path in {ROOT: (), 0: (1,), 1: (1, 2), 2: (1, 4), 3: (1, 2, 8)}.items():
        allowed = [token for token in plain.best(node, 9) if SPELT.allows(output + path, token)]
        assert rows.best(node, k) == allowed[:k]
        assert rows.argmax(node) == allowed[0]
        assert all((rows.logprob(node, token) == -math.inf) == (token not in allowed) for token in range(9))


def test_a_token_is_barred_at_its_position_only() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]] * 2, np.float32)), 0)
    rows = AllowedRows(plain, Draft.chain([0], Provenance.PREVIOUS), (2, 2), Selection(), {3: 0})
    assert (rows.argmax(ROOT), rows.argmax(0)) == (0, 1)


def test_pieces_of_two_words_never_become_a_third() -> None:
    """Every sequence of allowed tokens has its foreign tokens in whole words, and can always go on."""
    paths: list[tuple[int, ...]] = [()]
    for _ in range(4):
        paths = [(*path, token) for path in paths for token in range(9) if SPELT.allows(path, token)]
        for path in paths:
            assert any(SPELT.allows(path, token) for token in range(9))
    assert (1, 2, 5) not in {path[:3] for path in paths}
    assert (1, 2, 3) in {path[:3] for path in paths}
    assert (8, 5) not in {path[:2] for path in paths}
    assert all(SPELT.only(path[:end]) in (None, {3}) for path in paths for end in range(4))
    assert (6, 6) in {path[:2] for path in paths}
    assert {(6, 1), (1, 1), (0, 1), (8, 7)} & {path[:2] for path in paths} == {(0, 1)}
