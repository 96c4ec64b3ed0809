"""Fetching listed models; nothing here leaves the machine."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import huggingface_hub as hub
import pytest

from redraft.errors import ModelError, OptionError
from redraft.models.hub import SPEECH, choose, chosen_model, default_model, fetch, hub_host, speech_folder


def test_download_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(*_: object, **__: object) -> str:
        raise OSError("The hub cannot be reached. Please check your connection.\nMore of it.")

    monkeypatch.setattr(hub, "hf_hub_download", fail)
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
    from redraft.backends.hf.options import HfOptions

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


def test_revision_goes_to_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[object] = []

    def note(*_: object, **options: object) -> str:
        asked.append(options["revision"])
        return "x.gguf"

    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: None)
    monkeypatch.setattr(hub, "hf_hub_download", note)
    assert fetch("qwen3-4b", "0123abc") == Path("x.gguf")
    fetch("qwen3-4b")
    assert asked == ["0123abc", "main"]


def test_recogniser_is_fetched_file_by_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: None)

    def download(repository: str, file: str, revision: str, local_dir: Path) -> str:
        assert repository == SPEECH["kroko-de"].repository
        local_dir.mkdir(exist_ok=True)
        (local_dir / file).touch()
        return str(local_dir / file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    with pytest.raises(ModelError, match="has not been downloaded yet; run: redraft models get kroko-de"):
        speech_folder("kroko-de")
    assert fetch("kroko-de") == tmp_path / "kroko-de" == speech_folder("kroko-de")
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
