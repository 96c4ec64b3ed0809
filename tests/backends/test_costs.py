"""Curves that are kept between programs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from redraft.backends import costs
from redraft.backends.machine import Processor
from redraft.backends.stopwatch import Measured
from redraft.decoding import cost
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve
from tests.fakes import RandomModel


class Named(RandomModel):
    identity = "a model"

    def pad_by(self, curve: CostCurve) -> None:
        """Do nothing."""


def measured(*seconds: float, problem: str = "") -> Measured:
    return Measured(CostCurve((1, 2, 4)[: len(seconds)], seconds), (0.0,) * len(seconds), 0, problem)


def measure_once(backend: Backend, _threads: int) -> Measured:
    """Times that do not depend on what else runs; the model can tell that it was asked."""
    slot = backend.open_slot()
    cost.sample(backend, slot)
    backend.close_slot(slot)
    return measured(1.0, 1.5, 2.0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(costs, "measure", measure_once)
    return tmp_path / "redraft" / costs.FILE


def test_model_is_measured_once(cache: Path) -> None:
    first, again = Named(), Named()
    curve = costs.known_curve(first)
    assert costs.known_curve(again) == curve
    assert first.requests and not again.requests
    assert cache.exists()


def test_another_model_is_measured_itself() -> None:
    costs.known_curve(Named())
    other = Named()
    other.identity = "another"
    costs.known_curve(other)
    assert other.requests


def test_model_without_name_is_measured_every_time(cache: Path) -> None:
    costs.known_curve(RandomModel())
    assert not cache.exists()


def test_new_curve_takes_place_of_old() -> None:
    costs.known_curve(Named())
    costs.keep(Named(), measured(1.0, 2.0))
    assert costs.known_curve(Named()) == CostCurve((1, 2), (1.0, 2.0))


def test_doubtful_curve(cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(costs, "measure", lambda _backend, _threads: measured(1.0, 0.42, problem="T(2) is odd"))
    assert costs.known_curve(Named()) == CostCurve((1, 2), (1.0, 0.42))
    assert not cache.exists()
    assert caplog.messages == ["the cost of a pass could not be measured well: T(2) is odd; it is not kept"]
    costs.keep(Named(), measured(1.0, 2.0))
    costs.keep(Named(), measured(1.0, 0.42, problem="T(2) is odd"))
    assert costs.known_curve(Named()).seconds == (1.0, 2.0)


@pytest.mark.parametrize("changed", ["processor", "library_hash"])
def test_curve_of_another_processor_or_library_is_ignored(monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    costs.keep(Named(), measured(1.0, 2.0))
    other = {"processor": lambda: Processor("another", frozenset()), "library_hash": lambda: "another"}
    monkeypatch.setattr(costs, changed, other[changed])
    monkeypatch.setattr(costs, "measure", lambda _backend, _threads: measured(3.0, 4.0))
    assert costs.known_curve(Named()).seconds == (3.0, 4.0)


def test_every_number_of_threads_has_curve_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Threaded(Named):
        counts: tuple[int, ...] = (1,)

        def thread_counts(self) -> tuple[int, ...]:
            return self.counts

        def fixed_threads(self, count: int) -> AbstractContextManager[None]:
            return nullcontext()

    asked: list[int] = []

    def measure(_backend: Backend, threads: int) -> Measured:
        asked.append(threads)
        return replace(measured(1.0, 5.0) if threads == 1 else measured(2.0, 3.0), threads=threads)

    monkeypatch.setattr(costs, "measure", measure)
    model = Threaded()
    assert costs.known_curve(model).seconds == (1.0, 5.0)
    model.counts = (1, 2)
    assert costs.known_curve(model).seconds == (1.0, 3.0)
    assert costs.known_curve(model).seconds == (1.0, 3.0)
    assert asked == [1, 2]


@pytest.mark.parametrize("text", ["", "[]", '{"x": 1}', '{"x": {"sizes": [2], "seconds": [1]}}', "\x00"])
def test_broken_file_is_as_none(cache: Path, text: str) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(text)
    model = Named()
    costs.known_curve(model)
    assert model.requests


def test_where_nothing_can_be_kept_it_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        model = Named()
        costs.known_curve(model)
        assert model.requests
