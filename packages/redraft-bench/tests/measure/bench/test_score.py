"""COMET for runs that are done, with a stand-in for its library."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from measure.bench.test_run import bench, quick_curves
from redraft.errors import InputError, MissingExtra, ModelError
from redraft_bench.bench.results import finish
from redraft_bench.bench.run import Bench
from redraft_bench.bench.score import add_comet

__all__ = ["quick_curves"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, quick_curves: None) -> Path:
    run: Bench = bench(tmp_path_factory.mktemp("scored"))
    finish(run, run.run())
    return run.folder


def stand_in(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A COMET whose score is the share of the reference's length; returns the models that it loads."""
    module = types.ModuleType("comet")
    loaded: list[str] = []

    class Loaded:
        def predict(self, data, **_more):
            scores = [len(each["mt"]) / len(each["ref"]) for each in data]
            return types.SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))

    def download(name: str) -> str:
        if name != "some/model":
            raise KeyError(f"Model '{name}' not supported by COMET.")
        return name

    def load(path: str) -> Loaded:
        loaded.append(path)
        return Loaded()

    module.download_model = download  # type: ignore[attr-defined]
    module.load_from_checkpoint = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "comet", module)
    return loaded


def test_every_row_gets_score_of_its_own_translations(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = stand_in(monkeypatch)
    (path,) = add_comet(folder, "some/model")
    assert loaded == ["some/model"]
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    made = bench(folder)
    segments = made.stream.segments
    for row, line in zip(rows, made.lines(), strict=False):
        shares = [len(r.translation) / len(segments[r.segment].references["de"]) for r in line.records]
        assert row["comet"] == round(sum(shares) / len(shares), 4)
        assert row["signature"].endswith("|comet:some/model")
    assert "comet" not in rows[-1]


def test_absent_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    with pytest.raises(ModelError, match="no/model of COMET cannot be had .*huggingface-cli download no/model"):
        add_comet(folder, "no/model")


def test_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no finished run"):
        add_comet(tmp_path, "some/model")


def test_without_library_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(MissingExtra, match="unbabel-comet"):
        add_comet(folder, "some/model")
