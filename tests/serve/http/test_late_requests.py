"""A connection on which a request does not arrive whole is closed, whichever part of it is missing."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

import pytest

from redraft import deadlines
from tests.serve.servers import SECONDS, running
from tests.serve.talking import expected, say

GET = b"GET /v1/sessions/x HTTP/1.1\r\nhost: 127.0.0.1\r\n"
POST = (
    b"POST /v1/sentences HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 99999\r\n\r\n"
)


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"", 0),
        (b"GET /v1/ser", 0),
        (GET, 0),
        (GET + b"\r\n" + GET, 1),
        (POST, 1),
        (POST + b'{"text": "we', 1),
    ],
    ids=["nothing", "half a line", "half a head", "half a second head", "no body", "half a body"],
)
@pytest.mark.parametrize("dripping", [False, True])
def test_closed(sent: bytes, answers: int, dripping: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "REQUEST", 0.5)
    with running() as server, server.socket() as talking, socket.create_connection(("127.0.0.1", server.port)) as late:
        talking.start("de", method="ar")
        late.settimeout(0.05)
        late.sendall(sent)
        received, until = b"", time.monotonic() + SECONDS
        with suppress(ConnectionError):
            while time.monotonic() < until:
                if dripping:
                    late.sendall(b"x")
                try:
                    if not (piece := late.recv(1 << 16)):
                        break
                    received += piece
                except TimeoutError:
                    pass
        assert time.monotonic() < until
        assert received.count(b"HTTP/1.1 ") == answers
        assert (b"the body must arrive within 0.5 seconds" in received) == (sent[:4] == b"POST")
        say(talking, "we saw her duck")  # a websocket stays, however long it is silent
        assert talking.until("final")[-1]["text"] == expected("we saw her duck")
