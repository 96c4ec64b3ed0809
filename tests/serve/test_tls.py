"""A server that speaks https, with a certificate of the operator's or of its own."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from pathlib import Path

import pytest
from websockets.sync.client import connect

from redraft.errors import OptionError
from redraft.serve import run
from redraft.serve.run import context_of
from redraft.serve.settings import ServeSettings
from tests.programs import program
from tests.serve.servers import SECONDS, Running, running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("openssl")
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def certificate(folder: Path) -> Path:
    (found,) = (folder / "redraft" / "tls").glob("*.pem")
    return found


def reached(server: Running, cert: Path) -> None:
    """Ask over https and a websocket, as who trusts this certificate."""
    trusting = ssl.create_default_context(cafile=str(cert))
    with urllib.request.urlopen(
        f"https://127.0.0.1:{server.port}/v1/offer", timeout=SECONDS, context=trusting
    ) as answer:
        assert answer.status == 200
    with connect(f"wss://localhost:{server.port}/v1/rooms/hall-1/watch", ssl=trusting, open_timeout=SECONDS) as viewer:
        assert "heartbeat" in str(viewer.recv(SECONDS))


def test_self_signed(folder: Path) -> None:
    with running(tls="self-signed") as server:
        silent, plain = (socket.create_connection(("127.0.0.1", server.port)) for _ in range(2))
        with silent, plain:  # others are served meanwhile
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            reached(server, certificate(folder))
    cert = certificate(folder)
    assert cert.stat().st_mode & 0o077 == 0
    before = cert.read_bytes()
    with running(tls_cert=cert) as server:
        reached(server, cert)
    context_of(ServeSettings(tls="self-signed"), ())
    assert certificate(folder).read_bytes() == before  # browsers have made an exception for it


def test_refused(tmp_path: Path) -> None:
    (tmp_path / "cert").write_text("no certificate")
    with pytest.raises(OptionError, match="cannot be used"):
        context_of(ServeSettings(tls_cert=tmp_path / "cert"), ())
    with pytest.raises(OptionError, match="needs tls_cert"):
        context_of(ServeSettings(tls_key=tmp_path / "cert"), ())


def test_address() -> None:
    assert run.url(ServeSettings(), "127.0.0.1", 9) == "http://127.0.0.1:9"
    assert run.url(ServeSettings(tls="self-signed"), "::1", 9) == "https://[::1]:9"
