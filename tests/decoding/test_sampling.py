"""Distributions by temperature and nucleus, and drawing from them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends.numpy_rows import NumpyRows
from redraft.captions.events import Update
from redraft.captions.state import START, Settings, Vocabulary
from redraft.captions.translation import Translation
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.rules import Sampler
from redraft.decoding.types import ROOT, Prompt
from tests.fakes import RandomModel

weights = st.lists(st.floats(0.001, 1), min_size=1, max_size=9)


def rows(*probabilities: float) -> NumpyRows:
    with np.errstate(divide="ignore"):
        return NumpyRows(np.log(np.array([probabilities])), 0)


@given(weights)
def test_temperature_one_and_all_tokens_is_row_itself(weights: list[float]) -> None:
    expected = [weight / sum(weights) for weight in weights]
    found = Sampler(1.0).distribution(rows(*weights), ROOT)
    assert [found[token] for token in range(len(weights))] == pytest.approx(expected)


@given(weights, st.floats(0.05, 2), st.floats(0, 1))
def test_nucleus_is_smallest_set_of_mass(weights: list[float], temperature: float, top_p: float) -> None:
    powers = np.array([weight ** (1 / temperature) for weight in weights])
    p = powers / powers.sum()
    found = Sampler(temperature, top_p).distribution(rows(*weights), ROOT)
    mass = sum(p[token] for token in found)
    assert math.isclose(sum(found.values()), 1)
    assert len(found) >= 1 and mass >= top_p - 1e-9
    least = min(found, key=lambda token: p[token])
    assert len(found) == 1 or mass - p[least] <= top_p + 1e-9, "a smaller set has the mass"
    assert all(p[token] <= p[least] + 1e-12 for token in range(len(p)) if token not in found)
    assert all(math.isclose(found[token], p[token] / mass, rel_tol=1e-6) for token in found)


@given(weights, st.floats(0.05, 2), st.integers(1, 12), st.floats(0, 1))
def test_top_k_are_best_tokens_of_which_nucleus_is_taken(
    weights: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    best = sorted(range(len(weights)), key=lambda token: (-weights[token], token))[:top_k]
    found = Sampler(temperature, top_p, top_k=top_k).distribution(rows(*weights), ROOT)
    alone = Sampler(temperature, top_p).distribution(rows(*(weights[token] for token in best)), ROOT)
    assert [*found] == best[: len(found)]
    assert [*found.values()] == pytest.approx([*alone.values()])


def test_ssbd_samples_behind_what_it_keeps() -> None:
    model = RandomModel(3, end_bias=-100)

    def tokens(**options: float) -> tuple[int, ...]:
        method = get_method("ssbd")
        parts = method.build(Setup(method.check({"beta": 0.5, **options}), model.end_tokens))
        asking = decode(Prompt((1, 2)), *parts, previous=(7, 8, 9), shown=3, end_tokens=model.end_tokens, limit=12)
        return run(asking, model, 0).tokens

    sampled = {tokens(temperature=1.0, seed=seed) for seed in range(8)}
    assert {each[:3] for each in sampled} == {(7, 8, 9)} and len(sampled) > 4
    assert tokens() == tokens(temperature=1.0, top_k=1) == tokens(temperature=1.0, top_p=0.0)


@pytest.mark.parametrize("top_p", [0.0, 0.3, 1.0])
def test_temperature_zero(top_p: float) -> None:
    assert Sampler(0.0, top_p).distribution(rows(0.2, 0.4, 0.4), ROOT) == {1: 1.0}


@pytest.mark.parametrize("temperature", [1e-320, 1e-9, 1.0, 2.0])
def test_nucleus_of_no_mass_is_best_token(temperature: float) -> None:
    assert Sampler(temperature, 0.0).distribution(rows(0.2, 0.5, 0.3), ROOT) == {1: 1.0}


def test_impossible_tokens_are_left_out() -> None:
    for temperature in (0.5, 1.0, 2.0):
        assert set(Sampler(temperature).distribution(rows(0.0, 0.5, 0.5, 0.0), ROOT)) == {1, 2}


@pytest.mark.parametrize("temperature", [1.0, 0.9])
@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.99, 1 - 1e-16])
def test_nucleus_of_many_tokens(temperature: float, top_p: float) -> None:
    flat = [1.0] * 1000
    found = Sampler(temperature, top_p).distribution(rows(*flat), ROOT)
    assert len(found) == pytest.approx(1000 * top_p, abs=1)
    assert set(found) == set(range(len(found))), "the lowest ids among equals"


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    sampler = Sampler(1.0, seed=3)
    counts = Counter(sampler.draw({4: 0.5, 7: 0.3, 1: 0.2}) for _ in range(10_000))
    assert set(counts) == {1, 4, 7}
    for token, probability in {4: 0.5, 7: 0.3, 1: 0.2}.items():
        assert counts[token] == pytest.approx(10_000 * probability, abs=5 * math.sqrt(10_000 * 0.25))


def test_seed_decides() -> None:
    def drawn(seed: int) -> list[int]:
        sampler = Sampler(1.0, seed=seed)
        return [sampler.draw(dict.fromkeys(range(50), 0.02)) for _ in range(8)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_updates_have_same_random_numbers() -> None:
    def captions(seed: int) -> list[tuple[int, ...]]:
        model, method = RandomModel(1), get_method("sampling")
        vocabulary = Vocabulary(model.end_tokens, model.token_bytes, model.tokenize, model.context_length)
        settings = Settings(method, {"seed": seed, "max_tokens": 16})
        encode = lambda source, *_: Prompt(tuple(model.tokenize(source)))  # noqa: E731
        translation, found = Translation("de", encode, vocabulary, settings), []
        for utterance in ("1", "2"):
            _, state = run(translation.translate(START, Update(utterance, 0, "the same text")), model, 0)
            found.append(state.output)
        return found

    assert captions(1)[0] == captions(1)[1] != ()
    assert captions(1)[0] != captions(2)[0]
