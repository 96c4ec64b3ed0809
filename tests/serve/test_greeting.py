"""The greeting: the addresses that it shows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from redraft.serve import run
from redraft.serve.settings import ServeSettings


def greeted(**settings: object) -> str:
    console = Console(file=io.StringIO(), width=80)
    run.greet(ServeSettings(**settings), 9000, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_local_server() -> None:
    shown = greeted(model="demo", methods=("ar", "ssbd"))
    assert "demo" in shown and "ar, ssbd" in shown
    for path in ("/ ", "/rooms ", "/docs "):
        assert f"http://127.0.0.1:9000{path}" in shown
    assert "Only this machine" in shown and "API key" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_rooms() -> None:
    shown = greeted(rooms={"hall-1": (), "hall-2": ()})
    assert all(f"http://127.0.0.1:9000/rooms/{room}" in shown for room in ("hall-1", "hall-2"))
    assert shown.count("Rooms") == 1


@pytest.mark.parametrize(
    ("host", "hosts", "own", "named"),
    [
        ("0.0.0.0", (), "192.0.2.7", "http://192.0.2.7:9000/rooms"),
        ("::", (), "192.0.2.7", "http://192.0.2.7:9000/rooms"),
        ("0.0.0.0", (), "", "http://127.0.0.1:9000/rooms"),
        ("0.0.0.0", ("stage.example",), "192.0.2.7", "http://stage.example:9000/rooms"),
        ("::1", (), "192.0.2.7", "http://[::1]:9000/rooms"),
        ("stage.example", (), "192.0.2.7", "http://stage.example:9000/rooms"),
    ],
)
def test_public_address(
    monkeypatch: pytest.MonkeyPatch, host: str, hosts: tuple[str, ...], own: str, named: str
) -> None:
    monkeypatch.setattr(run, "_own_address", lambda: own)
    shown = greeted(host=host, hosts=hosts, keys=Path("keys"))
    assert named in shown and "An API key is needed" in shown
    assert ("Only this machine" in shown) is (host == "::1")


def test_own_address() -> None:
    assert run._own_address().count(".") in (0, 3)


def test_viewers_only() -> None:
    shown = greeted(viewers_only=True, fanout="redis://127.0.0.1", rooms={"hall-1": ()})
    assert "viewers of sessions on other servers" in shown and "ssbd" not in shown
    assert "9000/rooms" in shown
    assert "9000/docs" not in shown and "Page" not in shown
