"""Contexts side by side: the rows of one context, slots shared out evenly, faults that stay where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from redraft.backends import load
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_replicas, usual_replicas
from redraft.backends.quantise import quantise
from redraft.backends.replicas import Replicas
from redraft.errors import CapabilityError, ContextOverflow, ModelError, OptionError
from redraft.types import ROOT, Draft, Provenance, Rows, Score
from tests.fakes import distribution
from tests.gguf_models import write_llama

OPTIONS = LlamaOptions(context_length=256, slots=5, threads=1, gpu_layers=0, exact=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = write_llama(tmp_path_factory.mktemp("models") / "f32.gguf")
    quantise(source, source.with_name("q8.gguf"), "Q8_0")
    return source.with_name("q8.gguf")


@pytest.fixture
def backend(model: Path) -> Iterator[Replicas]:
    opened = open_replicas(str(model), OPTIONS, 2)
    assert isinstance(opened, Replicas)
    yield opened
    opened.close()


def request(slot: int, shift: int = 0) -> tuple[int, Score]:
    prefix = tuple(range(20 + slot + shift, 30 + slot + shift))
    return slot, Score(prefix, Draft.chain([40 + slot] * slot, Provenance.MODEL))


def table(rows: Rows, slot: int) -> np.ndarray:
    return np.array([distribution(rows, node) for node in range(ROOT, slot)])


def test_every_request_gets_the_rows_that_it_gets_from_one_context(backend: Replicas, model: Path) -> None:
    single = LlamaCpp(model, OPTIONS)
    slots = [backend.open_slot() for _ in range(5)]
    assert slots == [single.open_slot() for _ in range(5)]
    for chosen in ([3, 0, 4, 1, 2], [4, 2], [1], []):
        for shift in (0, 3):
            requests = [request(slot, shift) for slot in chosen]
            pairs = zip(backend.score(requests), single.score(requests), chosen, strict=True)
            assert all(np.array_equal(table(ours, slot), table(theirs, slot)) for ours, theirs, slot in pairs)
    single.close()


def test_slots_are_shared_out_evenly(backend: Replicas) -> None:
    assert [backend.open_slot() for _ in range(6)] == [0, 1, 2, 3, 4, 5]  # two times three are the least for five
    with pytest.raises(CapabilityError, match="in use"):
        backend.open_slot()
    backend.close_slot(4)
    backend.close_slot(1)
    backend.close_slot(3)
    assert [backend.open_slot() for _ in range(3)] == [1, 4, 3]  # whoever has fewer comes first


def test_a_fault_leaves_the_others_as_they_were(backend: Replicas) -> None:
    slots = [backend.open_slot() for _ in range(2)]
    for bad in slots:
        too_long = (bad, Score(tuple(range(10)) * 30))
        with pytest.raises(ContextOverflow, match="300 tokens do not fit"):
            backend.score([request(1 - bad), too_long])
        first, second = backend.score([request(0), request(1)])
        assert first.argmax(ROOT) >= 0 and second.argmax(0) >= 0


def test_it_is_the_model_that_each_of_its_contexts_has(backend: Replicas, model: Path) -> None:
    single = LlamaCpp(model, OPTIONS)
    for name in ("capabilities", "metadata", "context_length", "vocabulary_size", "end_tokens", "pad_token"):
        assert getattr(backend, name) == getattr(single, name)
    assert backend.tokenize("ab") == single.tokenize("ab")
    assert backend.identity == single.identity
    single.close()


def test_weights_are_loaded_once_and_freed_last(model: Path) -> None:
    first = LlamaCpp(model, OPTIONS)
    second = LlamaCpp(model, OPTIONS, first.model)
    second.open_slot()
    second.close()
    assert first.score([(first.open_slot(), Score((20, 21)))])[0].argmax(ROOT) >= 0
    first.close()
    with pytest.raises(ModelError, match="is closed"):
        first.score([(0, Score((20,)))])


def test_one_context_needs_no_others(model: Path) -> None:
    backend = open_replicas(str(model), OPTIONS, 1)
    assert isinstance(backend, LlamaCpp) and backend.options == OPTIONS
    backend.close()
    with pytest.raises(OptionError, match="replicas must be at most 5, one for each slot of the cache, not 6"):
        open_replicas(str(model), OPTIONS, 6)


def test_small_models_on_the_cpu_run_on_every_core(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "usable_cores", lambda: 4)
    assert usual_replicas(str(model), OPTIONS) == 4
    assert usual_replicas(str(model), replace(OPTIONS, slots=3)) == 3
    with monkeypatch.context() as patched:
        patched.setattr(load, "on_gpu", lambda layers: True)
        assert usual_replicas(str(model), OPTIONS) == 1
    monkeypatch.setattr(load, "SMALL_MODEL", model.stat().st_size - 1)
    assert usual_replicas(str(model), OPTIONS) == 1


def test_contexts_share_the_cores(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "usable_cores", lambda: 5)
    made: list[LlamaOptions] = []

    class Noted(LlamaCpp):
        def __init__(self, path: Path, options: LlamaOptions, *weights: LlamaModel) -> None:
            made.append(options)
            super().__init__(path, replace(options, threads=1), *weights)

    monkeypatch.setattr(load, "LlamaCpp", Noted)
    open_replicas(str(model), replace(OPTIONS, threads=0, branches=3), 2).close()
    assert made == [replace(OPTIONS, threads=2, slots=3, branches=2)] * 2
