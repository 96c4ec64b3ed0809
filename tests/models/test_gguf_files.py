"""A model is all of its files: parts, files that are missing or something else, and llama.cpp's reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.backends import load
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import default_contexts, open_model
from redraft.backends.options import LlamaOptions
from redraft.decoding.types import ROOT, Score
from redraft.errors import ModelError
from redraft.signature import file_hash, model_label, text_hash
from tests.gguf_models import split, write_llama

OPTIONS = LlamaOptions(context_length=64, threads=1, gpu_layers=0)
#: What people get instead of a file, and what they are told of its beginning.
INSTEAD = {
    b"": "it is empty",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n": "it begins with b'version https://git-lfs.github.com/",
    b"\n<!DOCTYPE html><html>Access to this model is restricted</html>": ".*<!DOCTYPE html><html>Access",
    b'{"error":"Repository not found"}': ".*Repository not found",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture
def parts(whole: Path, tmp_path: Path) -> list[Path]:
    found = split(whole, tmp_path)
    assert [part.name for part in found] == [f"tiny-0000{number}-of-00005.gguf" for number in range(1, 6)]
    return found


def best(path: Path) -> int:
    backend = open_model(str(path), OPTIONS)
    try:
        return backend.score([(backend.open_slot(), Score((20, 21, 22)))])[0].argmax(ROOT)
    finally:
        backend.close()


def test_split_model_counts_with_all_parts(whole: Path, parts: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert best(parts[0]) == best(whole)
    size = sum(part.stat().st_size for part in parts)
    monkeypatch.setattr(load, "usable_cores", lambda: 4)
    for limit, contexts in ((size, 4), (size - 1, 1)):
        monkeypatch.setattr(load, "SMALL_MODEL", limit)
        assert default_contexts(str(parts[0]), {"gpu_layers": 0}) == contexts
    backend = LlamaCpp(parts[0], OPTIONS)
    assert backend.model.size == size
    backend.close()
    hashes = " ".join(f"{part.name} {file_hash(part)}" for part in parts)
    assert model_label(parts[0]) == f"{parts[0].name}@{text_hash(hashes)}"


def test_other_part_is_refused(parts: list[Path]) -> None:
    with pytest.raises(ModelError, match="00002-of-00005.gguf' is one of 5 parts: name the first one, 'tiny-00001-of"):
        open_model(str(parts[1]))


def test_missing_part_is_named(parts: list[Path]) -> None:
    parts[3].unlink()
    with pytest.raises(ModelError, match="00004-of-00005.gguf' does not exist"):
        open_model(str(parts[0]))


def test_part_that_is_cut_short(parts: list[Path]) -> None:
    parts[2].write_bytes(parts[2].read_bytes()[:-500])
    with pytest.raises(ModelError, match="cannot be loaded: tensor .* is not within the file bounds"):
        open_model(str(parts[0]))


@pytest.mark.parametrize(("content", "words"), INSTEAD.items())
def test_other_files_are_named(parts: list[Path], whole: Path, content: bytes, words: str) -> None:
    for path in (parts[4], parts[0]):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=f"{path.name}' is not a GGUF file, since {words}"):
            open_model(str(parts[0]))


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (99, "this GGUF file is version 99 but this software only supports up to version 3"),
        (1, "GGUFv1 is no longer supported, please use a more up-to-date version"),
    ],
)
def test_reason_is_that_of_llama_cpp(whole: Path, tmp_path: Path, version: int, reason: str) -> None:
    data, path = whole.read_bytes(), tmp_path / "other.gguf"
    path.write_bytes(data[:4] + version.to_bytes(4, "little") + data[8:])
    with pytest.raises(ModelError, match=f"other.gguf' cannot be loaded: {reason}$"):
        open_model(str(path))
