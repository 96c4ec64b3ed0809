"""Equation 3 of BiLD: the accepted draft tokens, and the token after them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.methods.bild import Rollback
from redraft.decoding.rules import Sampler
from redraft.decoding.types import Draft, Provenance

GREEDY = Sampler()
FIRST, SECOND, THIRD = [0.0, 0.7, 0.2, 0.1], [0.0, 0.1, 0.7, 0.2], [0.0, 0.2, 0.1, 0.7]


def rows(*distributions: list[float]) -> NumpyRows:
    with np.errstate(divide="ignore"):
        return NumpyRows(np.log(np.array(distributions)), 0)


def chain(*tokens: int) -> Draft:
    return Draft.chain(tokens, Provenance.MODEL)


@given(st.floats(0, 5), st.lists(st.integers(1, 3), max_size=2))
def test_keeps_up_to_first_token_that_is_too_far(threshold: float, tokens: list[int]) -> None:
    spread = [FIRST, SECOND, THIRD][: len(tokens) + 1]
    far = [-math.log(spread[place][token]) > threshold for place, token in enumerate(tokens)]
    kept = far.index(True) if True in far else len(tokens)
    verdict = Rollback(threshold, GREEDY).judge(chain(*tokens), rows(*spread))
    assert (verdict.accepted, verdict.token) == (tuple(range(kept)), kept + 1)


def test_token_on_which_both_models_agree() -> None:
    spread = rows([0.0, 0.4, 0.3, 0.3], FIRST)  # -log of 0.4 is 0.92
    for agreeing, kept in ((False, ()), (True, (0,))):
        assert Rollback(0.9, GREEDY, agreeing=agreeing).judge(chain(1), spread).accepted == kept
    assert Rollback(0.9, GREEDY, agreeing=True).judge(chain(2), spread).accepted == ()


def test_distance_of_just_threshold_is_kept() -> None:
    halves = rows([0.5, 0.5], [0.5, 0.5])
    distance = -halves.logprob(-1, 1)
    assert Rollback(distance, GREEDY).judge(chain(1), halves).accepted == (0,)
    assert Rollback(math.nextafter(distance, 0), GREEDY).judge(chain(1), halves).accepted == ()


def test_threshold_of_zero_keeps_certain_tokens_only() -> None:
    sure, nearly = [0.0, 1.0, 0.0], [0.0, 0.999, 0.001]
    verdict = Rollback(0.0, GREEDY).judge(chain(1, 1, 1), rows(sure, nearly, sure, sure))
    assert (verdict.accepted, verdict.token) == ((0,), 1)


def test_impossible_token_is_dropped_at_every_threshold() -> None:
    assert Rollback(100.0, GREEDY).judge(chain(0), rows(FIRST, SECOND)).accepted == ()


def test_empty_draft_gives_large_models_token() -> None:
    verdict = Rollback(2.0, GREEDY).judge(Draft(), rows(THIRD))
    assert (verdict.accepted, verdict.token) == ((), 3)


def test_of_siblings_most_probable_is_kept() -> None:
    tree = Draft((3, 2, 2), (-1, -1, 1), (Provenance.MODEL,) * 3)
    verdict = Rollback(2.0, GREEDY).judge(tree, rows(FIRST, SECOND, THIRD, FIRST))
    assert (verdict.accepted, verdict.token) == ((1,), 3)


@pytest.mark.parametrize(("draft", "place"), [((), 0), ((3,), 0), ((1,), 1)])
def test_sampled_token_of_large_model(draft: tuple[int, ...], place: int) -> None:
    rule, spread = Rollback(1.0, Sampler(1.0, seed=4)), rows(FIRST, SECOND)
    verdicts = [rule.judge(chain(*draft), spread) for _ in range(4000)]
    assert {len(verdict.accepted) for verdict in verdicts} == {place}
    counts = Counter(verdict.token for verdict in verdicts)
    for token, probability in enumerate([FIRST, SECOND][place]):
        assert counts[token] == pytest.approx(4000 * probability, abs=160)


def test_distance_is_that_of_whole_distribution() -> None:
    # The nucleus of half the mass is token 1 alone; token 2 is outside it and still near enough.
    rule = Rollback(2.0, Sampler(1.0, top_p=0.5))
    verdict = rule.judge(chain(2), rows(FIRST, SECOND))
    assert (verdict.accepted, verdict.token) == ((0,), 2)
    assert {rule.judge(chain(3), rows(FIRST, SECOND)).token for _ in range(50)} == {1}
