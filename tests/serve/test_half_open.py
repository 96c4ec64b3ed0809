"""Half-open connections over real TCP: pings detect them, and the session can be resumed."""

from __future__ import annotations

import base64
import json
import os
import socket as sockets
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.frames import Frame, Opcode

from redraft import deadlines
from redraft.protocol import public_name
from tests.serve.servers import ATTEMPTS, Running, running
from tests.serve.talking import all_given_back, expected, finals, say
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "PING", 0.2)


def frame(message: dict[str, Any]) -> bytes:
    return Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=True)


@contextmanager
def silent(server: Running, token: str) -> Iterator[sockets.socket]:
    """A connection that has begun a session, and from then on neither reads nor answers pings."""
    with sockets.create_connection(("127.0.0.1", server.port)) as raw:
        key = base64.b64encode(os.urandom(16)).decode()
        fields = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}")
        raw.sendall("\r\n".join(("GET /v1/live HTTP/1.1", "Host: 127.0.0.1", *fields, "", "")).encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 101")
        raw.sendall(frame({"type": "start", "targets": ["de"], "token": token, "connection": next(ATTEMPTS)}))
        raw.sendall(frame({"type": "update", "utterance": "1", "seq": 0, "text": "we saw", "final": True}))
        yield raw


def test_slot_of_silent_client() -> None:
    token = "silent" + "x" * 30
    with running(slots=1) as server, silent(server, token):
        eventually(lambda: public_name(token) in server.hub.sessions and server.hub.owned(token).broadcast.owner)
        session = server.hub.owned(token)
        eventually(lambda: session.broadcast.owner is None)
        with server.socket() as other:  # the only slot goes to whoever speaks
            other.start()
            say(other, "her duck")
            assert finals(other.until("final")) == [("1", "de", expected("her duck"))]
        with server.socket() as socket:
            assert socket.start(token=token)["resumed"] is True
            say(socket, "we saw")  # again, since it cannot know
            say(socket, "it was", utterance="2")
            socket.say("end")
            heard = finals(socket.until("done"))
        assert heard == [("1", "de", expected("we saw")), ("2", "de", expected("it was"))]
        assert session.transcript.text("txt", ["de"]).splitlines() == [text for _, _, text in heard]


def test_silent_client_expires() -> None:
    token = "silent" + "x" * 30
    with running(keep_seconds=0.5) as server, silent(server, token):
        eventually(lambda: server.engine.scheduler.lanes == 1)
        eventually(lambda: all_given_back(server))
        assert "redraft_sessions 0.0" in server.ask("/metrics").text
        with server.socket() as socket:  # too late: another session begins
            assert socket.start(token=token)["resumed"] is False


def test_take_over_half_open() -> None:
    token = "silent" + "x" * 30
    with running() as server, silent(server, token), server.socket() as socket:
        # An update that has not been read when the connection is taken over is lost; a client would send it again.
        eventually(lambda: public_name(token) in server.hub.sessions)
        eventually(lambda: ("1", "de") in server.hub.owned(token).transcript)
        assert socket.start(token=token)["resumed"] is True
        assert finals(socket.until("final")) == [("1", "de", expected("we saw"))]
        assert server.hub.owned(token).broadcast.owner is not None


@pytest.mark.parametrize("reset", [False, True])
def test_no_pongs(reset: bool) -> None:
    token = "silent" + "x" * 30
    with running(keep_seconds=30) as server, silent(server, token) as raw:
        eventually(lambda: public_name(token) in server.hub.sessions and server.hub.owned(token).broadcast.owner)
        if reset:  # the other end is gone at once, without a goodbye
            raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
            raw.close()
        session = server.hub.owned(token)
        eventually(lambda: session.broadcast.owner is None)
        eventually(lambda: not server.server.server_state.connections)
        with server.socket() as socket:
            assert socket.start(token=token)["resumed"] is True
            assert finals(socket.until("final")) == [("1", "de", expected("we saw"))]


def test_who_answers_pings_stays() -> None:
    with running() as server, server.socket() as socket:
        token = socket.start()["token"]
        time.sleep(1.2)
        assert server.hub.owned(token).broadcast.owner is not None
        say(socket, "we saw")
        assert finals(socket.until("final")) == [("1", "de", expected("we saw"))]
