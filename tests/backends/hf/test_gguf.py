"""A GGUF file on transformers: the same ids as on llama.cpp, and weights that can be saved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra hf")
pytest.importorskip("accelerate", reason="needs the extra gguf")

from redraft.backends.hf import facts
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import on_transformers, open_transformers
from redraft.backends.options import HfOptions, LlamaOptions
from redraft.decoding.types import ROOT, Score
from redraft.errors import MissingExtra, ModelError
from tests.gguf_models import Heads, write_family, write_llama


def test_same_ids(tmp_path: Path) -> None:
    file = write_llama(tmp_path / "model.gguf")
    name = f"hf:{file}"
    assert on_transformers(name)
    other = open_transformers(name, HfOptions(64, 1, device="cpu", threads=1))
    with closing(LlamaCpp(file, LlamaOptions(64, threads=1))) as backend:
        ids = tuple(backend.tokenize("the thing and the end"))
        assert other.tokenize("the thing and the end") == list(ids)
        slot, place = backend.open_slot(), other.open_slot()
        for _ in range(12):
            (rows,), (others,) = backend.score([(slot, Score(ids))]), other.score([(place, Score(ids))])
            assert rows.argmax(ROOT) == others.argmax(ROOT)
            assert rows.logprob(ROOT, 5) == pytest.approx(
                others.logprob(ROOT, 5), abs=0.01
            )  # the cache of llama.cpp has 16 bits
            ids += (rows.argmax(ROOT),)
        assert other.end_tokens <= backend.end_tokens
    other.model.save_pretrained(tmp_path / "saved")  # transformers refuses to save what it takes for quantised
    assert (tmp_path / "saved" / "config.json").exists()


def test_heads_of_qwen3_have_the_size_in_the_file(tmp_path: Path) -> None:
    file = write_family(tmp_path / "model.gguf", Heads("qwen3", 4, 2, 32))
    other = open_transformers(f"hf:{file}", HfOptions(64, 1, device="cpu", threads=1))
    ids = tuple(other.tokenize("the thing and the end"))
    with closing(LlamaCpp(file, LlamaOptions(64, threads=1))) as backend:
        (rows,), (others,) = (
            backend.score([(backend.open_slot(), Score(ids))]),
            other.score([(other.open_slot(), Score(ids))]),
        )
        assert rows.argmax(ROOT) == others.argmax(ROOT)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        open_transformers(f"hf:{tmp_path / 'none.gguf'}", HfOptions())


def test_library_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match="gguf extra"):
        open_transformers(f"hf:{write_llama(tmp_path / 'model.gguf')}", HfOptions())
