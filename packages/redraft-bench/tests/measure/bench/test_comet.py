"""COMET, with a stand-in for its library."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from redraft.errors import MissingExtra, ModelError
from redraft_bench.bench.score import comet, load_comet

MODEL = "Unbabel/wmt22-comet-da"


class Library(ModuleType):
    """What is used of unbabel-comet 2.2; a translation scores by its share of the reference's length."""

    def __init__(self) -> None:
        super().__init__("comet")
        self.downloaded: list[str] = []
        self.loaded: list[str] = []
        self.arguments: dict[str, Any] = {}

    def download_model(self, model: str) -> str:
        if model != MODEL:
            raise KeyError(f"Model '{model}' not supported by COMET.")
        self.downloaded.append(model)
        return "cache/model.ckpt"

    def load_from_checkpoint(self, path: str) -> Library:
        self.loaded.append(path)
        return self

    def predict(self, samples: list[dict[str, str]], **arguments: Any) -> SimpleNamespace:
        self.arguments = {"samples": samples, **arguments}
        scores = [len(sample["mt"]) / len(sample["ref"]) for sample in samples]
        return SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setitem(sys.modules, "comet", made)
    return made


def test_scores_and_what_library_is_given(library: Library) -> None:
    assert comet(load_comet(MODEL), ["a dog", "a cat"], ["Hund", "eine"], ["Hund", "eine Katze"]) == 0.7
    assert (library.downloaded, library.loaded) == ([MODEL], ["cache/model.ckpt"])
    assert library.arguments == {
        "samples": [
            {"src": "a dog", "mt": "Hund", "ref": "Hund"},
            {"src": "a cat", "mt": "eine", "ref": "eine Katze"},
        ],
        "batch_size": 16,
        "gpus": 0,
        "progress_bar": False,
    }


def test_absent_model_is_named_with_way_to_get_it(library: Library) -> None:
    with pytest.raises(ModelError, match="Unbabel/none of COMET cannot be had .*huggingface-cli download Unbabel/none"):
        load_comet("Unbabel/none")


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(MissingExtra, match="pip install unbabel-comet"):
        load_comet(MODEL)
