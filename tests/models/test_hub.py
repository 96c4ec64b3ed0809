"""Fetching listed models; nothing here leaves the machine."""

from __future__ import annotations

import hashlib
import socket
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from redraft.errors import ModelError
from redraft.models.hub import (
    CATALOGUE,
    SPEECH,
    cached_path,
    choose,
    chosen_model,
    default_model,
    fetch,
    hub_host,
)


def test_download_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(*_: object, **__: object) -> str:
        raise OSError("The hub cannot be reached. Please check your connection.\nMore of it.")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", fail)
    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: None)
    with pytest.raises(
        ModelError, match=r"^model 'qwen3-4b' could not be downloaded from .*: The hub cannot be reached;"
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
#: In the catalogue with and without a commit, and a recogniser with one.
PINNED, UNPINNED, RECOGNISER = "qwen3-4b", "tower-plus-2b", "kroko-de"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Hub:
    """A hub with every file of the catalogue, whose content is its own name unless ``contents`` has another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.broken = False
        self.contents: dict[str, str] = {}

    def model_info(self, repository: str, revision: str, files_metadata: bool) -> SimpleNamespace:
        assert files_metadata
        self.asked.append(revision)
        (model,) = (model for model in (CATALOGUE | SPEECH).values() if model.repository == repository)
        files = [*model.files]
        lfs = [SimpleNamespace(sha256=digest(self.contents.get(file, file))) for file in files]
        siblings = [SimpleNamespace(rfilename=file, lfs=each) for file, each in zip(files, lfs, strict=True)]
        if len(files) > 1:
            siblings[-1].lfs = None  # small files are not in LFS
        return SimpleNamespace(sha=COMMIT if revision == "main" else revision, siblings=siblings)

    def download(self, _repository: str, file: str, revision: str, local_dir: Path) -> None:
        assert len(revision) == 40 and local_dir.is_relative_to(self.folder)
        local_dir.mkdir(exist_ok=True)
        (local_dir / file).write_text("cut" if self.broken else self.contents.get(file, file))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    made = Hub(tmp_path)
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: None)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: made)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made.download)
    for listed in (CATALOGUE, SPEECH):
        for name, model in listed.items():
            hashes = {file: digest(file) if model.commit else "" for file in model.files}
            monkeypatch.setitem(listed, name, replace(model, files=hashes))
    return made


def test_catalogue() -> None:
    """Every model has a commit and all hashes, or none of them."""
    for model in (CATALOGUE | SPEECH).values():
        hashes = "".join(model.files.values())
        assert len(model.commit) in (0, 40) and len(hashes) == (64 * len(model.files) if model.commit else 0)
        assert not {*model.commit, *hashes} - {*"0123456789abcdef"}
    assert CATALOGUE[PINNED].commit and SPEECH[RECOGNISER].commit and not CATALOGUE[UNPINNED].commit


def test_commit_of_the_catalogue(hub: Hub) -> None:
    (file,) = CATALOGUE[PINNED].files
    for revision in (None, "main", COMMIT):
        assert fetch(PINNED, revision)[0] == hub.folder / file
    assert hub.asked == [CATALOGUE[PINNED].commit, "main", COMMIT]


def test_newest_files_where_no_commit_is_known(hub: Hub) -> None:
    (file,) = CATALOGUE[UNPINNED].files
    assert fetch(UNPINNED) == (hub.folder / file, COMMIT)
    hub.contents[file] = "newer"
    assert fetch(UNPINNED) == (hub.folder / file, COMMIT) and (hub.folder / file).read_text() == "newer"
    other = COMMIT[::-1]
    assert fetch(UNPINNED, other) == (hub.folder / file, other) and hub.asked == ["main", "main", other]


@pytest.mark.parametrize("name", [PINNED, UNPINNED, RECOGNISER])
def test_broken_file_is_removed(hub: Hub, name: str) -> None:
    hub.broken = True
    with pytest.raises(
        ModelError, match=r"^the SHA-256 of \S+.* of \S+ is wrong, so that was removed: download it again"
    ):
        fetch(name)
    assert not [path for path in hub.folder.rglob("*") if path.is_file()]
    hub.broken = False
    fetch(name)


def test_file_that_is_not_in_lfs_is_checked(hub: Hub) -> None:
    fetch(RECOGNISER)
    hub.contents["tokens.txt"] = "other"
    (hub.folder / RECOGNISER / "tokens.txt").unlink()
    with pytest.raises(ModelError, match="tokens.txt of"):
        fetch(RECOGNISER)


@pytest.mark.parametrize("name", [PINNED, RECOGNISER])
def test_files_that_are_there_are_checked_without_network(hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    fetched = fetch(name)
    monkeypatch.setattr("redraft.models.hub.hub_host", lambda: "hub.invalid")
    assert fetch(name) == fetched and len(hub.asked) == 1
    next(path for path in hub.folder.rglob("*") if path.is_file()).write_text("changed")
    with pytest.raises(ModelError, match="no network"):
        fetch(name)


def test_recogniser_is_fetched_file_by_file(hub: Hub) -> None:
    with pytest.raises(ModelError, match="has not been downloaded yet; run: redraft models get kroko-de"):
        cached_path(RECOGNISER, SPEECH)
    assert fetch(RECOGNISER)[0] == hub.folder / RECOGNISER == cached_path(RECOGNISER, SPEECH)
    assert cached_path(RECOGNISER, CATALOGUE) is None


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
