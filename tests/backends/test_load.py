"""Several contexts: they share weights and cores, but not slots."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from redraft.backends import load
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import default_contexts, open_backend, open_contexts, open_model, open_models
from redraft.backends.options import LlamaOptions
from redraft.decoding.methods import get_method
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.errors import ModelError
from redraft_bench.quantise import quantise
from tests.fakes import distribution
from tests.gguf_models import write_llama

OPTIONS = LlamaOptions(context_length=256, slots=2, threads=1, gpu_layers=0, exact=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = write_llama(tmp_path_factory.mktemp("models") / "f32.gguf")
    quantise(source, source.with_name("q8.gguf"), "Q8_0")
    return source.with_name("q8.gguf")


def test_every_context_gives_rows_that_it_gives_alone(model: Path) -> None:
    single, contexts = LlamaCpp(model, OPTIONS), open_contexts(str(model), OPTIONS, 2)
    assert [each.open_slot() for each in (single, *contexts)] == [0, 0, 0]
    for shift in (0, 3):
        for number, context in enumerate(contexts):
            score = Score(tuple(range(20 + shift, 30 + number)), Draft.chain([40, 41 + number], Provenance.MODEL))
            ((ours,), (theirs,)) = context.score([(0, score)]), single.score([(0, score)])
            nodes = range(ROOT, len(score.draft))
            assert all(np.array_equal(distribution(ours, node), distribution(theirs, node)) for node in nodes)
    for each in (single, *reversed(contexts)):
        each.close()


def test_weights_are_loaded_once_and_freed_last(model: Path) -> None:
    first, second = open_contexts(str(model), OPTIONS, 2)
    assert second.model is first.model
    second.open_slot()
    second.close()
    assert first.score([(first.open_slot(), Score((20, 21)))])[0].argmax(ROOT) >= 0
    first.close()
    with pytest.raises(ModelError, match="is closed"):
        first.score([(0, Score((20,)))])


def test_small_models_on_cpu_run_on_every_core(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "usable_cores", lambda: 4)
    assert default_contexts(str(model), {"gpu_layers": 0}) == 4
    with monkeypatch.context() as patched:
        patched.setattr(load, "on_gpu", lambda layers: True)
        assert default_contexts(str(model)) == 1
    monkeypatch.setattr(load, "SMALL_MODEL", model.stat().st_size - 1)
    assert default_contexts(str(model), {"gpu_layers": 0}) == 1


@pytest.mark.parametrize(("cores", "given", "each"), [(5, 0, 2), (1, 0, 1), (5, 3, 3)])
def test_contexts_share_cores(model: Path, monkeypatch: pytest.MonkeyPatch, cores: int, given: int, each: int) -> None:
    monkeypatch.setattr(load, "usable_cores", lambda: cores)
    made: list[LlamaOptions] = []

    class Noted(LlamaCpp):
        def __init__(self, path: Path, options: LlamaOptions, *weights: LlamaModel) -> None:
            made.append(options)
            super().__init__(path, replace(options, threads=1), *weights)

    monkeypatch.setattr(load, "LlamaCpp", Noted)
    for context in reversed(open_contexts(str(model), replace(OPTIONS, threads=given), 2)):
        context.close()
    assert made == [replace(OPTIONS, threads=each)] * 2


def test_model_is_closed_if_the_other_one_cannot_be_opened(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Path] = []

    class Noted(LlamaCpp):
        def close(self) -> None:
            closed.append(self.model.path)
            super().close()

    monkeypatch.setattr(load, "LlamaCpp", Noted)
    with pytest.raises(ModelError, match="none.gguf"), ExitStack() as stack:
        open_models([get_method("bild")], str(model), "none.gguf", {"threads": 1, "context_length": 16}, 1, stack)
    assert closed == [model]


def test_address_of_a_file_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'https://models.example/a.gguf' is an address: download the file"):
        open_backend("https://models.example/a.gguf")


def test_names_of_models(model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    open_model(str(model), LlamaOptions(threads=1, context_length=16)).close()
    for name, near in (("demmo", "; the nearest is demo"), ("hy-mt2-1.8", "; the nearest is hy-mt2-1.8b"), ("xyz", "")):
        with pytest.raises(ModelError, match=f"model '{name}' is neither a name nor a file{near}: use demo"):
            open_model(name)
    with pytest.raises(ModelError, match="'qwen3-4b' has not been downloaded yet; run: redraft models get qwen3-4b"):
        open_model("qwen3-4b")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".gguf", "~nobody-of-that-name/model.gguf"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(ModelError):
        open_model(name)
