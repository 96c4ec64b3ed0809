"""Proxies of the environment: nothing on this machine goes through one, and one that fails is named."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from redraft.errors import MissingExtra, RedraftError
from redraft.proxies import is_local, proxy_for

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "socks_proxy", "ws_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def refusing() -> Iterator[str]:
    """A proxy that wants a password."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://user:secret@127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(10)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        *[("http://127.0.0.1:8765", True), ("ws://localhost/", True), ("http://[::1]:8000", True)],
        *[("http://127.9.9.9", True), ("http://0.0.0.0:1", True), ("ws://a.localhost", True)],
        *[("http://192.168.1.2", False), ("http://localhost.example.org", False), ("http://example.org", False)],
    ],
)
def test_this_machine(monkeypatch: pytest.MonkeyPatch, url: str, local: bool) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")
    assert is_local(url) == local
    assert (proxy_for(url) is None) == local


def test_who_uses_which(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for("http://example.org") is None
    monkeypatch.setenv("all_proxy", "socks5://user:secret@proxy:1080")
    assert proxy_for("http://example.org") == "socks5://proxy:1080"
    assert proxy_for("ws://example.org") is None  # as websockets has it
    monkeypatch.setenv("https_proxy", "http://other:3128")
    assert proxy_for("wss://example.org/a") == proxy_for("https://example.org") == "http://other:3128"
    monkeypatch.setenv("no_proxy", "example.org")
    assert proxy_for("wss://example.org/a") is None


def recogniser(url: str) -> None:
    from redraft.speech.servers import ServerRecogniser

    ServerRecogniser(f"vosk:{url.replace('http', 'ws')}")


def client(url: str) -> None:
    from redraft.client import Client

    async def enter() -> None:
        async with Client(url, ["de"]):
            pass

    asyncio.run(enter())


def model(url: str) -> None:
    from redraft.backends.options import RemoteOptions
    from redraft.backends.remote.client import RemoteClient

    with closing(RemoteClient("vllm", url, "", RemoteOptions())) as server:
        server.ask("/v1/models")


ALL = pytest.mark.parametrize("reach", [recogniser, client, model])


@ALL
def test_socks_without_package(monkeypatch: pytest.MonkeyPatch, reach: object) -> None:
    for name in ("socks_proxy", "all_proxy"):
        monkeypatch.setenv(name, "socks5://user:secret@127.0.0.1:9")
    assert callable(reach)
    with pytest.raises(MissingExtra, match=r"the proxy socks5://127.0.0.1:9 of the environment needs the package "):
        reach("http://example.invalid:8765")


@ALL
def test_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch, reach: object, refusing: str) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, refusing)
    assert callable(reach)
    with pytest.raises(RedraftError) as raised:
        reach("http://example.invalid:8765")
    assert f"through the proxy {refusing.replace('user:secret@', '')} of the environment" in str(raised.value)
    assert "secret" not in str(raised.value) and "not a Redraft server" not in str(raised.value)


@ALL
def test_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch, reach: object) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert callable(reach)
    with pytest.raises(RedraftError, match=r"cannot be reached through the proxy http://127.0.0.1:9 of the "):
        reach("http://example.invalid:8765")


@ALL
def test_nothing_here_uses_one(monkeypatch: pytest.MonkeyPatch, reach: object) -> None:
    """A port at which nothing listens is what is reported, not the proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "socks_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert callable(reach)
    with pytest.raises(RedraftError, match="cannot be reached: ") as raised:
        reach("http://127.0.0.1:2")
    assert "proxy" not in str(raised.value)
