"""Rows without impossible tokens agree with logits of minus infinity, except that nothing is scaled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.decode import AllowedRows, decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.methods.aasd import entropy_threshold, fixed_threshold
from redraft.decoding.methods.sampling import Rejection
from redraft.decoding.methods.ssbd import Biased, PreviousOutput
from redraft.decoding.rules import Sampler
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import (
    NOTHING_BARRED,
    ROOT,
    Barred,
    Context,
    Draft,
    Prompt,
    Provenance,
    top_k,
)
from tests.fakes import Everything, RandomModel

SIZE = 40
#: As if 1 were "S", 2 "inc", 3 "inn", 4 "inatra", 5 and 9 some ends, 6 " Tom", 7 "x" and 8 a full stop.
WORDS = frozenset({(1, 2, 3), (1, 4), (3, 9), (0, 5), (6,)})
SPELT = Selection(
    frozenset({2, 3, 4, 5, 6, 7, 9}), frozenset({1, 2, 3, 4, 5, 7, 9}), frozenset({*range(1, 8), 9}), WORDS
)


class Planted(Nothing):
    """Always drafts the same."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def propose(self, context: Context) -> Draft:
        return self.draft


def allowed(
    rows: NumpyRows,
    draft: Draft,
    selection: Selection,
    output: tuple[int, ...] = (),
    barred: Barred = NOTHING_BARRED,
) -> AllowedRows:
    found = AllowedRows(draft, output, selection, barred)
    found.rows = rows
    return found


@given(st.integers(0, 1000), st.frozensets(st.integers(0, SIZE - 1), max_size=SIZE - 1), st.integers(1, SIZE + 3))
def test_best_tokens_are_best_possible_ones(seed: int, foreign: frozenset[int], k: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(2, SIZE)).astype(np.float32)
    banned = logits.copy()
    banned[:, list(foreign)] = -np.inf
    draft = Draft.chain([SIZE], Provenance.PREVIOUS)
    rows, expected = allowed(NumpyRows(logits, 0), draft, Selection(foreign)), NumpyRows(banned, 0)
    for node in (ROOT, 0):
        assert rows.argmax(node) == expected.argmax(node)
        assert rows.best(node, k) == expected.best(node, min(k, SIZE - len(foreign)))


def test_probabilities_stay_as_they_are() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]], np.float32)), 0)
    rows = allowed(plain, Draft(), Selection(frozenset({0})))
    assert top_k(rows, ROOT, 2) == [(1, plain.logprob(ROOT, 1)), (2, plain.logprob(ROOT, 2))]
    assert rows.logprob(ROOT, 0) == -math.inf
    assert rows.logprob(ROOT, 2) == plain.logprob(ROOT, 2)
    assert rows.entropy(ROOT) == plain.entropy(ROOT)


@given(st.integers(0, 1000), st.integers(0, 8), st.integers(1, 12))
def test_node_knows_path_to_it(seed: int, length: int, k: int) -> None:
    draw = np.random.default_rng(seed)
    output = tuple(draw.integers(0, 8, length).tolist())
    draft = Draft((1, 2, 4, 8), (ROOT, 0, 0, 1), (Provenance.PREVIOUS,) * 4)
    plain = NumpyRows(draw.normal(size=(5, 10)).astype(np.float32), 0)
    rows = allowed(plain, draft, SPELT, output)
    for node, path in {ROOT: (), 0: (1,), 1: (1, 2), 2: (1, 4), 3: (1, 2, 8)}.items():
        expected = SPELT.after(output + path).among(plain.best(node, 10))
        assert rows.best(node, k) == expected[:k]
        assert rows.argmax(node) == expected[0]
        assert all((rows.logprob(node, token) == -math.inf) == (token not in expected) for token in range(10))


def test_token_is_barred_at_its_position_only() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]] * 2, np.float32)), 0)
    rows = allowed(plain, Draft.chain([0], Provenance.PREVIOUS), EVERYTHING, (2, 2), {3: frozenset([0])})
    assert (rows.argmax(ROOT), rows.argmax(0)) == (0, 1)


def test_several_tokens_are_barred_at_a_position() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]], np.float32)), 0)
    rows = allowed(plain, Draft(), EVERYTHING, barred={0: frozenset([0, 1])})
    assert (rows.argmax(ROOT), rows.best(ROOT, 3), rows.logprob(ROOT, 1)) == (2, [2], -math.inf)


def test_only_token_that_may_follow_is_never_barred() -> None:
    """After "S", "inc" must be followed by "inn"; after "inn" alone, only some end is barred."""
    plain = NumpyRows(np.zeros((1, 10), np.float32), 0)
    rows = allowed(plain, Draft(), SPELT, (1, 2), {2: frozenset([3])})
    assert (rows.argmax(ROOT), rows.best(ROOT, 2), rows.logprob(ROOT, 3)) == (3, [3], plain.logprob(ROOT, 3))
    either = Selection(SPELT.foreign, SPELT.begins, SPELT.ends, frozenset({(2, 3, 3), (2, 3, 5)}))
    assert allowed(plain, Draft(), either, (2, 3), {2: frozenset([3])}).best(ROOT, 2) == [5]


def test_rows_of_prompt_are_free() -> None:
    plain = NumpyRows(np.log(np.array([[0.5, 0.3, 0.2]] * 2, np.float32)), -1)
    assert allowed(plain, Draft(), Selection(frozenset({0}))).best(ROOT - 1, 1) == [0]


def test_pieces_of_two_words_never_become_third() -> None:
    """Every sequence of possible tokens can always go on."""
    paths: list[tuple[int, ...]] = [()]
    for _ in range(4):
        paths = [(*path, token) for path in paths for token in SPELT.after(path).among(range(10))]
        for path in paths:
            assert SPELT.after(path).among(range(10))
    written = {path[start:end] for path in paths for start in range(4) for end in range(start + 1, 5)}
    assert {(1, 2, 3), (3, 9), (1, 4), (6, 6), (1, 8)} <= written
    assert written.isdisjoint({(1, 2, 5), (1, 2, 8), (2, 3, 9), (6, 1), (1, 1), (8, 7), (8, 5), (4, 3)})


def test_half_character_is_completed() -> None:
    """As if "ễ" were three tokens, which are no letters."""
    chosen = Selection(frozenset({2}), frozenset({1, 2}), frozenset({1, 2}), frozenset({(1, 2, 5, 6, 7)}))
    assert [chosen.after((1, 2, 5, 6, 7)[:end]).only for end in range(6)] == [None, None, {5}, {6}, {7}, None]


@pytest.mark.parametrize("beta", [0.2, 0.5, 1.0])
@given(st.integers(0, 1000), st.lists(st.integers(0, 9), max_size=12).map(tuple))
def test_no_bias_keeps_what_is_impossible(beta: float, seed: int, previous: tuple[int, ...]) -> None:
    model = RandomModel(seed, vocabulary=10, shift=0.0, end_bias=-2.0)
    rule = Biased(beta, end_tokens=model.end_tokens)
    asking = decode(
        Prompt((1,), selection=SPELT), PreviousOutput(), rule, previous=previous, end_tokens=model.end_tokens, limit=12
    )
    output = run(asking, model, 0).tokens
    assert all(SPELT.after(output[:place]).among([token]) for place, token in enumerate(output))


def test_nodes_after_impossible_one_are_impossible() -> None:
    draft = Draft((1, 2, 5, 8), (ROOT, 0, 1, 0), (Provenance.PREVIOUS,) * 4)
    rows = NumpyRows(np.zeros((5, 10), np.float32), 0)
    assert allowed(rows, draft, SPELT).possible_nodes() == [0, 1, 3]
    assert allowed(rows, draft, SPELT, (8,), {2: frozenset([8])}).possible_nodes() == [0, 1]


def test_trees_have_no_impossible_nodes() -> None:
    tree = Draft((7, 8, 8, 6), (ROOT, ROOT, 1, 0), (Provenance.GENERATED,) * 4)
    model = RandomModel(0, vocabulary=10)
    asking = decode(Prompt((1,), selection=SPELT), Planted(tree), Everything(), end_tokens=frozenset({0}), limit=3)
    output = run(asking, model, 0)
    assert model.requests[0].draft.tokens == (8, 8) and output.tokens[:2] == (8, 8)
    assert (output.drafted, output.accepted) == (2, 2)


def test_sampled_draft_is_judged_whole() -> None:
    """A token that cannot be accepted was drawn all the same, so what takes its place is not drawn from all."""
    drafted = Draft((1,), (ROOT,), (Provenance.MODEL,), ({1: 0.5, 2: 0.5},))
    plain = NumpyRows(np.log(np.array([[0.0001, 0.0001, 0.5, 0.4998]] * 2, np.float32)), 0)
    for seed in range(20):
        rule = Rejection(Sampler(1.0, 0.99, seed))
        asking = decode(
            Prompt((9,)), Planted(drafted), rule, barred={0: frozenset([1])}, end_tokens=frozenset(), limit=2
        )
        assert next(asking).draft == drafted
        assert asking.send(plain).prefix == (9, 3)


def test_what_is_forced() -> None:
    two = Selection(frozenset({2, 3, 4}), words=frozenset({(2, 3), (2, 4)}))
    assert SPELT.is_forced((1, 2)) and not SPELT.is_forced((1,)) and not SPELT.is_forced(())
    assert two.after((2,)).only == frozenset({3, 4}) and not two.is_forced((2,))


def test_trusted_drafts_need_probability() -> None:
    rows = allowed(NumpyRows(np.zeros((1, 10), np.float32), 0), Draft(), SPELT)
    for test in (fixed_threshold(0.01), entropy_threshold(0.0, 0.01)):
        assert not test(rows, ROOT, 7)
        assert test(rows, ROOT, 8)


def test_nucleus_is_of_possible_tokens() -> None:
    plain = NumpyRows(np.log(np.array([[0.4, 0.3, 0.2, 0.1]], np.float32)), 0)
    rows = allowed(plain, Draft(), Selection(frozenset({0})))
    assert Sampler(1.0, 0.8).distribution(rows, ROOT) == pytest.approx({1: 0.6, 2: 0.4})
    assert set(Sampler(1.0001, 0.8).distribution(rows, ROOT)) == {1, 2}
