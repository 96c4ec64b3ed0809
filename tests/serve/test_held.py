"""Hidden ends of translations on a server: at pauses, after drops, and at the end, they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from redraft.captions.events import Caption, Failure, Update
from redraft.decoding.types import Tally
from redraft.engine import stream
from redraft.engine.lanes import Answer
from tests.serve.fakes import offline
from tests.serve.servers import Running, Socket
from tests.serve.talking import expected, say


def shown(messages: list[dict[str, Any]]) -> list[str]:
    return [each["text"] for each in messages if each["type"] in ("partial", "final")]


def begin(server: Running, socket: Socket, **fields: Any) -> str:
    """Hides all of a first translation."""
    token: str = socket.start("de", method="ar", options={"agree": 2, "first_sight": 1}, **fields)["token"]
    return token


def test_end_without_final(server: Running) -> None:
    with server.socket() as socket:
        begin(server, socket)
        say(socket, "we saw her duck", final=False)
        socket.say("end")
        last = [each for each in socket.until("done") if each["type"] in ("partial", "final")][-1]
        assert (last["type"], last["text"]) == ("final", expected("we saw her duck"))


def test_pause(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LONG_PAUSE", 0.2)
    with server.socket() as socket:
        begin(server, socket)
        say(socket, "we saw her duck", final=False)
        assert [shown(socket.until("partial"))[-1] for _ in range(2)] == ["", expected("we saw her duck")]


def test_pause_after_a_drop(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LONG_PAUSE", 0.5)
    with server.socket() as socket:
        token = begin(server, socket)
        say(socket, "we saw her duck", final=False)
        socket.until("partial")
    with server.socket() as socket:
        begin(server, socket, token=token)
        assert expected("we saw her duck") in [shown(socket.until("partial"))[-1] for _ in range(2)]


def test_next_utterance(server: Running) -> None:
    with server.socket() as socket:
        begin(server, socket)
        say(socket, "we saw her duck", final=False)
        assert shown(socket.until("partial"))[-1] == ""
        say(socket, "and left", utterance="2")
        heard = socket.until("final")
        assert shown([each for each in heard if each.get("utterance") == "1"]) == [expected("we saw her duck")]


def test_failure_after_rest() -> None:
    """A final update that fails ends its own utterance, whatever became of the words before."""
    before, failed = Update("a", 0, "we saw"), Update("b", 0, "her duck", final=True)
    failures = [Failure(f"{each.utterance} failed", None, each.utterance, 0, "de") for each in (before, failed)]
    for rest in (Caption("a", 0, "de", "wir sahen"), failures[0]):
        session = offline()
        session.answered(Answer("de", failed, [rest, failures[1]], 0.1, Tally()))
        assert ("b", "de") in session.transcript and ("a", "de") not in session.transcript
