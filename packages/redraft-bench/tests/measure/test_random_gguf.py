"""Files with random weights: llama.cpp loads them, and invalid ones are refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
import pytest

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.errors import ModelError, OptionError
from redraft_bench.models.random_gguf import bytes_needed, write_random
from redraft_bench.models.shape import FORMATS, SHAPES, Shape

TINY = SHAPES["tiny"]
GEMMA = replace(TINY, architecture="gemma2", window=64)
UNTIED = replace(TINY, tied=False)


def write(path: Path, shape: Shape = TINY, format: str = "F16", seed: int = 0) -> Path:
    write_random(shape, path, format, name="tiny", seed=seed)
    return path


@contextmanager
def opened(path: Path) -> Iterator[LlamaCpp]:
    with closing(LlamaCpp(path, LlamaOptions(context_length=256, threads=1, gpu_layers=0))) as backend:
        yield backend


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [TINY, GEMMA, UNTIED], ids=["qwen3", "gemma2", "untied"])
def test_llama_cpp_runs_every_shape_in_every_format(tmp_path: Path, shape: Shape, format: str) -> None:
    path = write(tmp_path / "a.gguf", shape, format)
    with opened(path) as backend:
        assert llama_cpp.llama_model_n_params(backend.model.handle) == shape.parameters
        assert backend.vocabulary_size == shape.vocabulary
        assert llama_cpp.llama_model_n_ctx_train(backend.model.handle) == shape.context
        assert backend.metadata["general.name"] == "tiny"
        assert (llama_cpp.llama_model_n_swa(backend.model.handle) > 0) is bool(shape.window)
        ids = tuple(range(3, 103))
        rows = backend.score([(backend.open_slot(), Score(ids, Draft.chain((900, 5), Provenance.MODEL)))])[0]
        logs = [rows.logprob(node, rows.argmax(node)) for node in (ROOT, 0, 1)]
    assert np.isfinite(logs).all() and len(set(logs)) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


@pytest.mark.parametrize(
    ("format", "wanted"),
    [
        ("F16", {"F32", "F16"}),
        ("BF16", {"F32", "BF16"}),
        ("Q8_0", {"F32", "Q8_0"}),
        ("Q4_K_M", {"F32", "Q4_K", "Q6_K"}),
    ],
)
def test_weights_have_format_asked_for(tmp_path: Path, format: str, wanted: set[str]) -> None:
    tensors = gguf.GGUFReader(write(tmp_path / "a.gguf", format=format)).tensors
    assert {tensor.tensor_type.name for tensor in tensors} == wanted
    assert {tuple(tensor.shape) for tensor in tensors if tensor.name == "blk.1.ffn_down.weight"} == {(512, 256)}


def test_tokenizer_has_bytes(tmp_path: Path) -> None:
    with opened(write(tmp_path / "a.gguf")) as backend:
        ids = backend.tokenize("Ä\n", start=True)
        assert ids[0] == 1
        assert b"".join(map(backend.token_bytes, ids)) == "Ä\n".encode()
        assert backend.token_bytes(TINY.vocabulary - 1) == b""
        assert backend.end_tokens == {2}


@pytest.mark.parametrize("format", FORMATS)
def test_room_is_reckoned_and_not_too_much(tmp_path: Path, format: str) -> None:
    size = write(tmp_path / "a.gguf", format=format).stat().st_size
    drawn = 0 if format in ("F16", "BF16") else 2 * TINY.parameters
    assert size + drawn < bytes_needed(TINY, format) < 1.2 * (size + drawn)


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10**9, 10**9, 3 * 10**9))
    with pytest.raises(ModelError) as raised:
        write(tmp_path / "a.gguf", SHAPES["qwen3-4b"], "Q4_K_M")
    assert str(raised.value) == f"writing 'a.gguf' takes 10.8 GB in {str(tmp_path)!r}, where 3.0 GB are free"
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("format", ["Q9", "q8_0", ""])
def test_unknown_format(tmp_path: Path, format: str) -> None:
    with pytest.raises(OptionError) as raised:
        write(tmp_path / "a.gguf", format=format)
    assert str(raised.value) == f"format must be one of F32, F16, BF16, Q8_0, Q4_0, Q4_K_M, not {format!r}"


def test_nothing_is_left_of_file_that_was_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.gguf")
    before = path.read_bytes()

    def interrupt(_what: str, share: float | None) -> None:
        if share is None or share > 0.5:
            raise KeyboardInterrupt

    for quant in ("F16", "Q8_0"):
        with pytest.raises(KeyboardInterrupt):
            write_random(TINY, path, quant, name="", seed=1, tell=interrupt)
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == before
