"""The shipped demo model on transformers: exported, it keeps its tokenizer and facts, and gives the ids of generate.

That every method decodes as on llama.cpp is shown in test_parity.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra hf")

from redraft import Translator, Update
from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_backend
from redraft.backends.options import LlamaOptions
from redraft.decoding.method import Value
from redraft.decoding.types import Tally
from redraft.errors import CapabilityError
from tests.backends.hf import models as tiny

ENGINE = {"context_length": 256, "threads": 1}
LLAMA = LlamaOptions(context_length=256, threads=1, gpu_layers=0, exact=True)
TEXTS = ("I have", "I have a very small dog", "I had a very small dog that barks.")


@pytest.fixture(scope="module")
def on_transformers(folders: dict[str, Path]) -> HfDecoder:
    backend = open_backend(str(folders["demo-tiny"]), ENGINE)
    assert isinstance(backend, HfDecoder)
    return backend


@pytest.fixture(scope="module")
def on_llama_cpp(files: dict[str, Path]) -> Iterator[LlamaCpp]:
    backend = LlamaCpp(files["demo-tiny"], LLAMA)
    yield backend
    backend.close()


def test_same_tokenizer_and_facts(on_transformers: HfDecoder, on_llama_cpp: LlamaCpp) -> None:
    ours, theirs = on_transformers, on_llama_cpp
    for name in ("end_tokens", "pad_token", "vocabulary_size", "context_length"):
        assert getattr(ours, name) == getattr(theirs, name)
    known = {key for key in theirs.metadata if key.startswith("redraft.")}
    names = ("own_script", "prompt", "source_languages", "target_languages")
    assert known == {f"redraft.{name}" for name in names}
    for key in known:
        assert ours.metadata[key] == theirs.metadata[key]
    for token in range(ours.vocabulary_size):
        assert ours.token_bytes(token) == theirs.token_bytes(token)
    for text in ("Hello wörld 12345 日本語 </s> <2de>", "I have  a dog.", " x", ""):
        for special in (False, True):
            asked = {"special": special, "start": True}
            assert ours.tokenize(text, **asked) == theirs.tokenize(text, **asked)


def test_ids_of_generate(on_transformers: HfDecoder) -> None:
    with Translator(on_transformers, ["de"], method="ssbd", options={"beta": 0.0}) as translator:
        for number, text in enumerate(TEXTS):
            translator.translate(Update("1", number, text))
            latest = translator.state("de")
            assert latest.output == tiny.greedy(on_transformers.model, latest.prompt, limit=60)[0]
        assert translator.state("de").tally.accepted > 0


def early_exit(folder: Path, **options: Value) -> tuple[list[tuple[int, ...]], Tally]:
    """Outputs of every update, and the counts, of the model that drafts with its own first layers."""
    with Translator.open(
        str(folder),
        to=["de"],
        method="bild-early-exit",
        options={"layers": 2, "end": "verified", "max_tokens": 40, **options},
        engine=ENGINE,
    ) as translator:
        return outputs(translator), translator.state("de").tally


def outputs(translator: Translator) -> list[tuple[int, ...]]:
    found = []
    for number, text in enumerate(TEXTS):
        translator.translate(Update("1", number, text))
        found.append(translator.state("de").output)
    return found


def test_early_exit_counts(folders: dict[str, Path], on_transformers: HfDecoder) -> None:
    with Translator(on_transformers, ["de"], method="ar", options={"max_tokens": 40}) as translator:
        expected, plain = outputs(translator), translator.state("de").tally
    ids, tally = early_exit(folders["demo-tiny"], fallback=0, rollback=0)  # all is drafted, nothing kept
    assert (ids, tally.passes, tally.accepted) == (expected, plain.passes, 0)
    assert tally.draft_passes == tally.drafted > tally.passes
    ids, tally = early_exit(folders["demo-tiny"], fallback=1)  # nothing is drafted, since no layer is that sure
    assert (ids, tally.passes, tally.drafted) == (expected, plain.passes, 0)
    assert 0 < tally.draft_passes <= tally.passes
    ids, tally = early_exit(folders["demo-tiny"], fallback=0, rollback=100, window=3)  # all that is drafted is kept
    assert tally.accepted == tally.drafted > 0
    assert tally.passes == sum(-(-(len(each) + 1) // 4) for each in ids)


@pytest.mark.parametrize("layers", [4, 5])
def test_exit_after_last_layer_is_refused(folders: dict[str, Path], layers: int) -> None:
    with pytest.raises(CapabilityError, match=rf"must be after 1 to 3 of its 4 layers, not after {layers}"):
        early_exit(folders["demo-tiny"], layers=layers)


def test_llama_cpp_has_no_early_exit(files: dict[str, Path]) -> None:
    with pytest.raises(CapabilityError, match="^method 'bild-early-exit' needs a backend with early exit$"):
        early_exit(files["demo-tiny"])
