"""The shipped demo model on transformers: exported, it gives llama.cpp's ids in as many passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the hf extra is not installed")
pytest.importorskip("transformers", reason="the hf extra is not installed")
pytest.importorskip("gguf", reason="the train extra is not installed")

from redraft import Translator, Update
from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_backend
from redraft.backends.quantise import quantise
from redraft.events import Caption
from redraft.models import shipped_path
from redraft.train.export_hf import gguf_to_hf
from redraft.types import Backend
from tests.backends.hf import models as tiny

ENGINE = LlamaOptions(context_length=256, slots=2, threads=1, gpu_layers=0, exact=True)
TEXTS = ("I have", "I have a very small dog", "I had a very small dog that barks.")


@pytest.fixture(scope="module")
def on_transformers(tmp_path_factory: pytest.TempPathFactory) -> HfDecoder:
    folder: Path = tmp_path_factory.mktemp("models") / "demo"
    gguf_to_hf(shipped_path("demo"), folder)
    backend = open_backend(str(folder), ENGINE)
    assert isinstance(backend, HfDecoder)
    return backend


@pytest.fixture(scope="module")
def on_llama_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCpp]:
    path: Path = tmp_path_factory.mktemp("models") / "demo-f32.gguf"
    quantise(shipped_path("demo"), path, "F32")
    backend = LlamaCpp(path, ENGINE)
    yield backend
    backend.close()


def test_the_same_tokenizer_and_facts(on_transformers: HfDecoder, on_llama_cpp: LlamaCpp) -> None:
    ours, theirs = on_transformers, on_llama_cpp
    for name in ("end_tokens", "pad_token", "vocabulary_size", "context_length"):
        assert getattr(ours, name) == getattr(theirs, name)
    known = {key for key in theirs.metadata if key.startswith("redraft.")}
    assert known == {"redraft.prompt", "redraft.source_languages", "redraft.target_languages"}
    for key in known:
        assert ours.metadata[key] == theirs.metadata[key]
    for token in range(ours.vocabulary_size):
        assert ours.token_bytes(token) == theirs.token_bytes(token)
    for text in ("Hello wörld 12345 日本語 </s> <2de>", "I have  a dog.", " x", ""):
        for special in (False, True):
            asked = {"special": special, "start": True}
            assert ours.tokenize(text, **asked) == theirs.tokenize(text, **asked)


def captions(backend: Backend, method: str) -> list[object]:
    """Every caption and its ids, and the counts of passes."""
    found: list[object] = []
    with Translator(backend, ["de", "ja"], method=method) as translator:
        for number, text in enumerate(TEXTS):
            events = translator.translate(Update("1", number, text, final=number == len(TEXTS) - 1))
            found += [(event.language, event.text) for event in events if isinstance(event, Caption)]
            found += [translator.latest_ids("de"), translator.latest_ids("ja")]
        assert all(tally.passes for tally in translator.tallies.values())
        return [*found, translator.tallies]


@pytest.mark.parametrize("method", ["ar", "cd", "ssbd"])
def test_the_same_captions_ids_and_passes(on_transformers: HfDecoder, on_llama_cpp: LlamaCpp, method: str) -> None:
    assert captions(on_transformers, method) == captions(on_llama_cpp, method)


def test_the_ids_of_generate(on_transformers: HfDecoder) -> None:
    with Translator(on_transformers, ["de"], method="ssbd", options={"beta": 0.0}) as translator:
        for number, text in enumerate(TEXTS):
            translator.translate(Update("1", number, text))
            prompt, output = translator.latest_ids("de")
            assert output == tiny.greedy(on_transformers.model, prompt, limit=60)[0]
        assert translator.tallies["de"].accepted > 0
