"""Fetching listed models; nothing here leaves the machine."""

from __future__ import annotations

import hashlib
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from redraft.errors import ModelError, OptionError
from redraft.models.hub import SPEECH, Fetched, choose, chosen_model, default_model, fetch, hub_host, speech_folder


def test_download_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(*_: object, **__: object) -> str:
        raise OSError("The hub cannot be reached. Please check your connection.\nMore of it.")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", fail)
    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: None)
    with pytest.raises(
        ModelError, match=r"^model 'qwen3-4b' could not be downloaded from .*: The hub cannot be reached$"
    ):
        fetch("qwen3-4b")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that does not respond."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free_port()}")


@pytest.mark.usefixtures("offline")
def test_without_network_that_is_said_at_once_and_once(capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with pytest.raises(
        ModelError, match=r"'qwen3-4b'.*: no network, 127.0.0.1 does not answer; you can copy \S+\.gguf of \S+ from"
    ):
        fetch("qwen3-4b")
    assert time.monotonic() - began < 8  # the hub's own client tries for half a minute
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("offline")
def test_models_of_transformers_say_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra hf")
    from redraft.backends.hf.model import open_hf
    from redraft.backends.options import HfOptions

    began = time.monotonic()
    with pytest.raises(ModelError, match="model 'nobody/nothing@abc' has not been downloaded, and there is no network"):
        open_hf("nobody/nothing@abc", HfOptions(device="cpu"))
    assert time.monotonic() - began < 8


@pytest.mark.usefixtures("offline")
def test_host_that_answers_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub_host() == "127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", f"http://{address}")
        monkeypatch.setenv("no_proxy", "")
        assert hub_host() is None
        monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
        assert hub_host() == "hub.invalid"
        for proxy in (f"http://{address}", address):
            monkeypatch.setenv("http_proxy", proxy)
            assert hub_host() is None


COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """A hub whose repositories have every file, each with its own name as the content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.broken = False

    def model_info(self, _repository: str, revision: str, files_metadata: bool) -> SimpleNamespace:
        assert files_metadata
        self.asked.append(revision)
        files = ["Qwen3-4B-Q4_K_M.gguf", *SPEECH["kroko-de"].files]
        lfs = [SimpleNamespace(sha256=hashlib.sha256(file.encode()).hexdigest()) for file in files]
        siblings = [SimpleNamespace(rfilename=file, lfs=each) for file, each in zip(files, lfs, strict=True)]
        siblings[-1].lfs = None  # small files are not in LFS
        return SimpleNamespace(sha=COMMIT, siblings=siblings)

    def download(self, _repository: str, file: str, revision: str, local_dir: Path) -> str:
        assert revision == COMMIT and local_dir.is_relative_to(self.folder)
        local_dir.mkdir(exist_ok=True)
        (local_dir / file).write_text("cut" if self.broken else file)
        return str(local_dir / file)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    made = Hub(tmp_path)
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: None)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: made)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made.download)
    return made


def test_revision_is_a_commit(hub: Hub) -> None:
    assert fetch("qwen3-4b") == Fetched(hub.folder / "Qwen3-4B-Q4_K_M.gguf", COMMIT)
    fetch("qwen3-4b", COMMIT)
    assert hub.asked == ["main", COMMIT]


def test_file_with_another_hash_is_removed(hub: Hub) -> None:
    hub.broken = True
    with pytest.raises(
        ModelError, match=r"^Qwen3-4B-Q4_K_M.gguf of \S+ arrived broken and was removed: download it again"
    ):
        fetch("qwen3-4b")
    assert not (hub.folder / "Qwen3-4B-Q4_K_M.gguf").exists()


def test_recogniser_is_fetched_file_by_file(hub: Hub) -> None:
    with pytest.raises(ModelError, match="has not been downloaded yet; run: redraft models get kroko-de"):
        speech_folder("kroko-de")
    assert fetch("kroko-de") == Fetched(hub.folder / "kroko-de", COMMIT)
    assert speech_folder("kroko-de") == hub.folder / "kroko-de"
    assert speech_folder("qwen3-4b") is None
    with pytest.raises(OptionError, match="model 'nope' is not in the catalogue: hy-mt2-1.8b, .*, kroko-es"):
        fetch("nope")


def test_default_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "models"))
    assert (chosen_model(), default_model()) == (None, "demo")
    choose("hy-mt2-1.8b")
    assert chosen_model() == default_model() == "hy-mt2-1.8b"
    (tmp_path / "file").touch()
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path / "file"))
    assert default_model() == "demo"
    with pytest.raises(ModelError, match="cannot be written"):
        choose("demo")
