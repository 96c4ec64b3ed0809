"""Settings of the server: where they come from, and what is said of wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from redraft.errors import OptionError
from redraft.serve.settings import ServeSettings, allowed, load


def test_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('port = 1\nslots = 2\nmethods = ["ar"]\nsessions = 3\n')
    monkeypatch.setenv("REDRAFT_SERVE_PORT", "4")
    monkeypatch.setenv("redraft_serve_slots", "5")
    found = load(file, port=6, host=None)
    assert (found.port, found.slots, found.sessions, found.methods) == (6, 5, 3, ("ar",))
    assert load().sessions == 128


def test_allowed_values() -> None:
    assert allowed("port") == "a whole number from 0 to 65535"
    assert allowed("ping_seconds") == "a number above 0 and at most 600"
    assert allowed("methods") == "a list of at least 1 string"
    kinds = {"log_text": "true or false", "keys": "a path", "host": "a string", "template": "a string"}
    assert {name: allowed(name) for name in kinds} == kinds
    assert all(map(allowed, ServeSettings.model_fields))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 70000", "port must be a whole number from 0 to 65535, not 70000"),
        ("port = 1.5", "port must be a whole number from 0 to 65535, not 1.5"),
        ("ping_seconds = nan", "ping_seconds must be a number above 0 and at most 600, not nan"),
        ('log_text = "perhaps"', "log_text must be true or false, not 'perhaps'"),
        ("keys = 5", "keys must be a path, not 5"),
        ("methods = []", "methods must be a list of at least 1 string, not []"),
        ("methods = [1]", "methods must be a list of at least 1 string, not one with 1"),
        ('methods = "ar"', "methods must be a list of at least 1 string, not 'ar'"),
        ("prot = 1", "'prot' is not a setting; the nearest is port"),
        ("quux = 1", "'quux' is not a setting: there are host, port, keys"),
    ],
)
def test_invalid_file(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(OptionError, match=re.escape(f"settings file {str(file)!r}: {said}")) as refused:
        load(file)
    assert not re.search(r"[Ii]nput|[Ee]xtra|validation|pydantic|\n", str(refused.value).removeprefix(str(file)))


def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text("port =")
    for place, said in (("serve.toml", "is not valid TOML"), ("none.toml", "no such file"), ("", "is a folder")):
        with pytest.raises(OptionError, match=f"settings file '.*' .*{said}"):
            load(tmp_path / place)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("REDRAFT_SERVE_SLOTZ", "3", "is not a setting; the nearest is REDRAFT_SERVE_SLOTS"),
        ("redraft_serve_slotz", "3", "is not a setting; the nearest is REDRAFT_SERVE_SLOTS"),
        ("REDRAFT_SERVE_", "3", "is not a setting: there are REDRAFT_SERVE_HOST, REDRAFT_SERVE_PORT"),
        ("REDRAFT_SERVE_PORT", "many", "must be a whole number from 0 to 65535, not 'many'"),
        (
            "REDRAFT_SERVE_HOSTS",
            "stage.example",
            'must be a list of strings in JSON, such as ["a", "b"], not \'stage.example\'',
        ),
        ("REDRAFT_SERVE_HOSTS", "5", "must be a list of strings, not 5"),
    ],
)
def test_invalid_environment(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(OptionError, match=re.escape(f"{variable} in the environment {said}")):
        load()


def test_list_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_SERVE_HOSTS", '["stage.example"]')
    assert load().hosts == ("stage.example",)


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org"])
def test_public_server_needs_keys(tmp_path: Path, host: str) -> None:
    (tmp_path / "serve.toml").write_text(f'host = "{host}"')
    with pytest.raises(OptionError, match="needs API keys"):
        load(tmp_path / "serve.toml")


def test_local_addresses() -> None:
    assert all(load(host=host).local for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"))
