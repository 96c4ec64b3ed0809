"""The cost of a pass, learned from disturbed passes and measured."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.backends import costs
from redraft.backends.costs import FORGOTTEN, ROUNDS, SURE, LearnedCosts, Measured, measure
from redraft.decoding.backend import CostCurve
from tests.fakes import RandomModel

AMX = CostCurve((1, 2, 4, 8, 16, 32, 64), (1.0, 1.44, 1.49, 1.89, 2.12, 3.66, 6.91))
STEEP = CostCurve((1, 64), (1.0, 64.0))
FLAT = CostCurve((1, 64), (1.0, 1.01))


def learned(true: CostCurve, sizes: list[int], load: Callable[[], float] = lambda: 1.0) -> LearnedCosts:
    found = LearnedCosts()
    for size in sizes:
        found.took(size, true(size) * load())
    return found


def stream(passes: int, seed: int = 0, *guesses: int) -> list[int]:
    """Sizes of the passes of updates: one that verifies the previous output, then ones over few tokens."""
    drawn = random.Random(seed)
    sizes: list[int] = []
    while len(sizes) < passes:
        sizes += [drawn.randint(4, 40), *drawn.choices((1, 1, 1, *guesses), k=drawn.randint(1, 8))]
    return sizes


@pytest.mark.parametrize("true", [AMX, STEEP, FLAT])
def test_learned_is_true(true: CostCurve) -> None:
    curve = learned(true, stream(400, 0, 2, 3, 4, 5)).curve()
    assert curve is not None
    for size in range(1, 33):
        assert curve(size) == pytest.approx(true(size), rel=0.1)


@pytest.mark.parametrize("true", [AMX, STEEP, FLAT])
def test_other_load(true: CostCurve) -> None:
    drawn = random.Random(1)
    load = lambda: 1.0 if drawn.random() < 0.5 else drawn.uniform(1.5, 40.0)  # noqa: E731
    curve = learned(true, stream(800, 1, 2, 3, 4, 5), load).curve()
    assert curve is not None
    for size in (1, 2, 3, 4, 5, 8, 16, 32):
        assert curve(size) == pytest.approx(true(size), rel=0.25)


def test_nothing_before_two_sizes() -> None:
    found = LearnedCosts()
    assert found.curve() is None
    found.took(1, 1.0)
    assert found.curve() is None
    found.took(9, 3.0)
    curve = found.curve()
    assert curve is not None and (curve(1), curve(5), curve(9)) == (1.0, 2.0, 3.0)


def test_size_disturbed_once_is_tried_again() -> None:
    found = learned(AMX, [1] * 5 + [8] * 5)
    for seen in range(1, SURE + 1):
        found.took(3, 1.8)
        for _ in range(costs.REFRESH):
            found.took(1, 1.0)
        curve = found.curve()
        assert curve is not None
        assert (curve(3) == 1.8) == (seen == SURE)


def test_slower_machine() -> None:
    found = learned(AMX, stream(400))
    for size in stream(FORGOTTEN, 2):
        found.took(size, 3 * AMX(size))
    curve = found.curve()
    assert curve is not None
    for size in (1, 8, 32):
        assert curve(size) == pytest.approx(3 * AMX(size), rel=0.1)


def test_old_passes_are_forgotten() -> None:
    found = learned(AMX, [3] * SURE)
    for _ in range(FORGOTTEN):
        found.took(1, 2.0)
        found.took(8, 4.0)
    curve = found.curve()
    assert curve is not None and curve(3) == pytest.approx(2.0 + 2 / 7 * 2.0)


def test_without_passes_over_one_token() -> None:
    """Two languages share all passes."""
    curve = learned(CostCurve((1, 2, 4), (1.0, 1.25, 1.75)), [2, 4] * SURE).curve()
    assert curve is not None and curve(1) == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(1, 300), st.floats(1e-6, 100)), max_size=60))
def test_any_passes_give_rising_curve(passes: list[tuple[int, float]]) -> None:
    found = LearnedCosts()
    for new, seconds in passes:
        found.took(new, seconds)
    curve = found.curve()
    if curve is not None:
        seconds_of = [curve(size) for size in range(1, 400, 7)]
        assert seconds_of == pytest.approx(sorted(seconds_of)) and seconds_of[0] > 0


@pytest.mark.parametrize("length", [8, 40, 512])
def test_measuring_stays_within_context(length: int) -> None:
    model = RandomModel()
    model.context_length = length
    slot = model.open_slot()
    assert len(costs.sample(model, slot)) == len(costs.sizes_for(model))
    assert costs.sizes_for(model)[:2] == (1, 2)
    assert max(len(each.prefix) + len(each.draft) for each in model.requests) <= length


def test_sample_has_pass_of_every_size() -> None:
    model = RandomModel()
    slot = model.open_slot()
    model.requests.clear()
    assert len(costs.sample(model, slot)) == len(costs.SIZES)
    assert [len(each.draft) + 1 for each in model.requests[1::2]] == [1, *costs.SIZES]


def test_curves_of_samples() -> None:
    samples = [[1.0, 5.0], [3.0, 4.0], [2.0, 9.0]]
    assert costs.curve_of(samples, statistics.median).seconds == (2.0, 5.0)
    assert costs.curve_of(samples).seconds == (1.0, 4.0)


def test_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass takes a second."""
    model, asked = RandomModel(), itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(asked)), monotonic=lambda: 0.0)
    monkeypatch.setattr(costs, "time", clock)
    found = measure(model)
    assert found == Measured(CostCurve(costs.SIZES, (1.0,) * len(costs.SIZES)), (0.0,) * len(costs.SIZES))
    assert len(model.requests) == 2 * (1 + ROUNDS) * (1 + len(costs.SIZES))
    assert not model._slots


def test_measuring_ends_after_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "PATIENCE", -1.0)
    model = RandomModel()
    measure(model)
    assert len(model.requests) == 2 * (1 + 2) * (1 + len(costs.SIZES))


@pytest.mark.parametrize(("limit", "sizes"), [(-1.0, 2), (2 * 7.0, 7)])
def test_measuring_slow_model_ends(monkeypatch: pytest.MonkeyPatch, limit: float, sizes: int) -> None:
    """Every pass takes a second, so that the warm-up takes too long."""
    model = RandomModel()
    clock = SimpleNamespace(
        perf_counter=lambda: float(len(model.requests)), monotonic=lambda: float(len(model.requests))
    )
    monkeypatch.setattr(costs, "time", clock)
    monkeypatch.setattr(costs, "MEASURED", limit)
    found = measure(model)
    assert found.curve.sizes == costs.SIZES[:sizes] and set(found.spread) == {0.0} and not model._slots
    assert len(model.requests) == 2 * (1 + sizes)


def test_cut_round_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RandomModel()
    passes = 2 * (1 + len(costs.SIZES))
    clock = SimpleNamespace(perf_counter=lambda: 0.0, monotonic=lambda: float(len(model.requests)))
    monkeypatch.setattr(costs, "time", clock)
    monkeypatch.setattr(costs, "MEASURED", 1.5 * passes)
    assert measure(model).curve.sizes == costs.SIZES
    assert passes < len(model.requests) < 2 * passes
