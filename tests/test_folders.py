"""Home and cache, and what works without them."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from redraft.backends.load import open_model
from redraft.cli import main
from redraft.errors import ModelError
from redraft.folders import cache_folder, home
from redraft.models.hub import chosen_model, default_model, fetch, models_folder
from tools import setup_env


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown user, as in a container that runs with any uid."""

    def unknown(_uid: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "REDRAFT_MODELS"):
        monkeypatch.delenv(name, raising=False)


def test_cache_folder_follows_environment(tmp_path: Path) -> None:
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "redraft"
    assert cache_folder({"XDG_CACHE_HOME": ""}) == Path.home() / ".cache" / "redraft"


@pytest.mark.usefixtures("homeless")
def test_without_home_nothing_is_kept() -> None:
    assert home() is None and cache_folder({}) is None
    assert chosen_model() is None and default_model() == "demo"


@pytest.mark.usefixtures("homeless")
def test_without_home_models_need_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for needing in (lambda: fetch("qwen3-4b"), lambda: open_model("qwen3-4b"), models_folder):
        with pytest.raises(ModelError, match="there is no home directory, .*: set REDRAFT_MODELS to a folder"):
            needing()
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    assert models_folder() == tmp_path


@pytest.mark.usefixtures("homeless")
def test_without_home_commands_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talk.txt").write_text("Good morning.")
    translate = ["translate", str(tmp_path / "talk.txt"), "--input", "text", "--to", "de"]
    for command, words in ((["models"], "downloaded to no folder, since there is no home"), (translate, "Guten Mor")):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 0 and words in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("homeless")
def test_without_home_nothing_is_compiled() -> None:
    with pytest.raises(SystemExit, match="no home directory .*: set XDG_CACHE_HOME"):
        setup_env.wheel_folder("1.0", {})
