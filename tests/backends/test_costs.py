"""Curves that are kept between programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.backends import costs
from redraft.cost import CostCurve
from tests.fakes import RandomModel


class Named(RandomModel):
    identity = "a model"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return costs.cache_file()


def test_a_model_is_measured_once(cache: Path) -> None:
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


def test_a_model_without_a_name_is_measured_every_time(cache: Path) -> None:
    costs.known_curve(RandomModel())
    assert not cache.exists()


def test_a_new_curve_takes_the_place_of_the_old() -> None:
    costs.known_curve(Named())
    curve = CostCurve((1, 2), (1.0, 2.0))
    costs.keep(Named(), curve)
    assert costs.known_curve(Named()) == curve


@pytest.mark.parametrize("text", ["", "[]", '{"x": 1}', '{"x": {"sizes": [2], "seconds": [1]}}', "\x00"])
def test_a_broken_file_is_as_none(cache: Path, text: str) -> None:
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
