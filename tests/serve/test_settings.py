"""Settings of the server: their sources, and errors for invalid ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from redraft.errors import OptionError
from redraft.serve.settings import load


def test_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('port = 1\nslots = 2\nmethods = ["ar"]\nsessions = 3\n')
    monkeypatch.setenv("REDRAFT_SERVE_PORT", "4")
    monkeypatch.setenv("redraft_serve_slots", "5")
    found = load(file, port=6, host=None)
    assert (found.port, found.slots, found.sessions, found.methods) == (6, 5, 3, ("ar",))
    assert load().sessions == 128


def test_engine_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option of the engine has its own precedence."""
    file = tmp_path / "serve.toml"
    file.write_text("[engine]\nthreads = 1\nexact = true\ncontext_length = 256\n")
    monkeypatch.setenv("REDRAFT_SERVE_ENGINE", '{"threads": 2, "gpu_layers": 0}')
    found = load(file, engine={"gpu_layers": 3}).engine
    assert found == {"threads": 2, "exact": 1, "context_length": 256, "gpu_layers": 3}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("port = 70000", "port in 'FILE': Input should be less than or equal to 65535, not 70000"),
        ("port = 1.5", "port in 'FILE': Input should be a valid integer, got a number with a fractional part"),
        ("keep_seconds = nan", "keep_seconds in 'FILE': Input should be less than or equal to 86400, not nan"),
        ('log_text = "perhaps"', "log_text in 'FILE': Input should be a valid boolean"),
        ("keys = 5", "keys in 'FILE': Input is not a valid path"),
        ("methods = []", "methods in 'FILE': Tuple should have at least 1 item"),
        ("methods = [1]", "methods in 'FILE': Input should be a valid string, not 1"),
        ("prt = 1", "prt in 'FILE' is not a setting: the nearest is port"),
        ("quux = 1", "quux in 'FILE' is not a setting: there are host, port, keys"),
        ("rooms = 3", "rooms in 'FILE': Input should be a valid dictionary, not 3"),
        ("engine = 3", "engine in 'FILE': Input should be a valid dictionary, not 3"),
        ("[engine]\nthread = 2", "engine has no option 'thread'; the nearest is threads; its options: "),
        ("[engine]\nthreads = 2000", "threads must be a whole number from 0 to 1024, not 2000"),
        ("port =", "settings file 'FILE' cannot be read, or is not valid TOML: "),
    ],
)
def test_invalid_file(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(OptionError) as refused:
        load(file)
    assert str(refused.value).replace(str(file), "FILE").startswith(sentence)


def test_missing_file(tmp_path: Path) -> None:
    for file in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(OptionError, match="cannot be read, or is not valid TOML"):
            load(file)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        (
            "REDRAFT_SERVE_SLOTZ",
            "3",
            "REDRAFT_SERVE_SLOTZ in the environment is not a setting: the nearest is slots",
        ),
        (
            "redraft_serve_slotz",
            "3",
            "redraft_serve_slotz in the environment is not a setting: the nearest is slots",
        ),
        (
            "REDRAFT_SERVE_",
            "3",
            "REDRAFT_SERVE_ in the environment is not a setting: there are host, port",
        ),
        (
            "REDRAFT_SERVE_PORT",
            "many",
            "REDRAFT_SERVE_PORT in the environment: Input should be a valid integer, not 'many'",
        ),
        ("REDRAFT_SERVE_HOSTS", "a.example", "REDRAFT_SERVE_HOSTS in the environment: lists and objects must be JSON"),
        ("REDRAFT_SERVE_ROOMS", "hall", "REDRAFT_SERVE_ROOMS in the environment: lists and objects must be JSON"),
        ("REDRAFT_SERVE_HOSTS", "5", "REDRAFT_SERVE_HOSTS in the environment: Input should be a valid tuple, not 5"),
    ],
)
def test_invalid_environment(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(OptionError, match=re.escape(sentence)):
        load()


def test_list_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_SERVE_HOSTS", '["stage.example"]')
    monkeypatch.setenv("REDRAFT_SERVE_ROOMS", '{"b": ["stage"]}')
    assert load().hosts == ("stage.example",) and load().rooms == {"b": ("stage",)}


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org"])
def test_public_server_needs_keys(tmp_path: Path, host: str) -> None:
    (tmp_path / "serve.toml").write_text(f'host = "{host}"')
    with pytest.raises(OptionError, match="needs API keys"):
        load(tmp_path / "serve.toml")


def test_local_addresses() -> None:
    assert all(load(host=host).local for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"))


def test_transcripts_must_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(transcripts=tmp_path).transcripts == tmp_path
    assert list(tmp_path.iterdir()) == []

    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("redraft.serve.settings.TemporaryFile", full)
    with pytest.raises(
        OptionError, match="transcripts must be an existing folder to write to.*No space left on device"
    ):
        load(transcripts=tmp_path)
