"""A connection is read no faster than its share of the time allows."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from websockets.sync.client import connect

from redraft.serve.http import security
from redraft.serve.http.security import READ_BURST, READ_SHARE, Braked
from tests.serve.servers import running
from tests.serve.talking import expected, finals, say

#: Masked frames: an empty text, a ping, and an empty continuation.
FRAMES = {"text": b"\x81\x80\0\0\0\0", "ping": b"\x89\x80\0\0\0\0", "continuation": b"\x00\x80\0\0\0\0"}


class Costly(asyncio.Protocol):
    """Everything that it receives takes a hundredth of a second, by a clock of its own."""

    def __init__(self) -> None:
        self.used, self.received = 0.0, b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.used += READ_BURST


def braked(inner: Costly) -> tuple[Braked, mock.Mock]:
    found, transport = Braked(inner, lambda: inner.used), mock.Mock()
    found.connection_made(transport)
    return found, transport


def test_share_of_the_time() -> None:
    async def work() -> None:
        found, transport = braked(inner := Costly())
        found.get_buffer(-1)[:5] = b"hello"
        found.buffer_updated(5)
        assert inner.received == b"hello" and not transport.pause_reading.called
        began = asyncio.get_running_loop().time()
        found.data_received(b"more")
        assert transport.pause_reading.called and not transport.resume_reading.called
        while not transport.resume_reading.called:
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() - began > 0.8 * READ_BURST / READ_SHARE

    asyncio.run(work())


def test_reasons_not_to_read() -> None:
    async def work() -> None:
        found, transport = braked(inner := Costly())
        inner.transport.pause_reading()
        found.pause_writing()
        inner.transport.resume_reading()
        assert not transport.resume_reading.called  # the peer does not read
        found.resume_writing()
        assert transport.resume_reading.called
        inner.transport.write(b"through")
        transport.write.assert_called_once_with(b"through")

    asyncio.run(work())


def test_never_modest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr(security, "PATIENCE", 0.05)
        now = mock.Mock(return_value=asyncio.get_running_loop().time())
        monkeypatch.setattr(asyncio.get_running_loop(), "time", now)
        found, transport = braked(Costly())
        for _ in range(4):
            found.data_received(b"")
        assert not transport.abort.called
        now.return_value += 0.06
        found.data_received(b"")
        assert transport.abort.called

    asyncio.run(work())


def flood(to: socket.socket, block: bytes) -> None:
    """Send until the connection is closed."""
    with suppress(OSError):
        while True:
            to.sendall(block)


@pytest.mark.parametrize("kind", FRAMES)
def test_flood(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions go on while a viewer floods, which is closed in the end."""
    monkeypatch.setattr(security, "READ_SHARE", 0.001)
    monkeypatch.setattr(security, "PATIENCE", 1.0)
    with running() as server, server.socket() as owner:
        name = owner.start(method="ar")["session"]
        with connect(f"{server.url.replace('http', 'ws')}/v1/watch/{name}", max_queue=None) as viewer:
            if kind == "continuation":
                viewer.socket.sendall(b"\x01\x80\0\0\0\0")
            flood(viewer.socket, FRAMES[kind] * 2000)
            say(owner, "we saw", utterance="1")
            assert finals(owner.until("final")) == [("1", "de", expected("we saw"))]
