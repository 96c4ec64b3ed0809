"""Transcripts of sessions that are over."""

from __future__ import annotations

import pytest

import redraft.serve.sessions.rooms
from redraft.captions.events import Caption
from redraft.protocol import Begin
from redraft.serve.sessions.broadcast import Broadcast
from redraft.serve.sessions.rooms import PastSessions
from redraft.serve.sessions.transcript import Transcript
from tests.serve.servers import Running, Socket, running
from tests.serve.talking import expected, say
from tests.waiting import eventually


def leave(server: Running, socket: Socket, room: str | None = None) -> str:
    """A session of two sentences whose tab is closed; its name, once it is forgotten."""
    name = str(socket.start("de", "ja", room=room)["session"])
    for utterance, text in enumerate(("we saw", "her duck")):
        say(socket, text, utterance=str(utterance))
        for _ in range(2):
            socket.until("final")
    socket.connection.close()
    eventually(lambda: name not in server.hub.sessions)
    return name


def test_kept_after_the_end() -> None:
    with running(keep_seconds=0) as server, server.socket() as socket:
        name = leave(server, socket, "hall-1")
        for path in (f"/v1/sessions/{name}", "/v1/rooms/hall-1"):
            answer = server.ask(f"{path}/transcript?language=de&live=true")
            assert answer.text == f"{expected('we saw')}\n{expected('her duck')}\n"
            assert answer.headers["content-disposition"] == 'attachment; filename="hall-1-de.txt"'
        assert server.ask(f"/v1/sessions/{name}").json["done"]
        room = {"type": "room", "room": "hall-1", "state": "over", "session": name}
        for path, first in ((f"/v1/watch/{name}", {}), ("/v1/rooms/hall-1/watch", room)):
            with server.socket(f"{path}?language=de") as late:
                heard = late.hear() if first else {}
                assert heard.items() >= first.items()
                texts = [late.hear()["text"] for _ in range(2)]
                assert texts == [expected("we saw"), expected("her duck")]
                assert first or late.hear() == {"type": "done"}  # in a room they wait for the next session
        assert server.ask("/v1/rooms/hall-2/transcript").status == 404
        assert server.ask("/v1/offer").json["transcript_seconds"] == 3600


def test_kept_if_not_resumed() -> None:
    """A session that cannot start again, since the server is full, leaves its transcript."""
    with running(keep_seconds=0, languages=2) as server, server.socket() as socket:
        started = socket.start("de", "ja")
        say(socket, "we saw", utterance="1")
        for _ in range(2):
            socket.until("final")
        socket.connection.close()
        name = started["session"]
        eventually(lambda: server.hub.past.find(name))
        with server.socket() as full, server.socket() as again:
            assert full.start("de", "ja")["type"] == "started"
            assert again.start("de", "ja", token=started["token"])["code"] == "capacity"
            assert server.hub.past.find(name)
        eventually(lambda: not server.hub.engines.lanes)
        with server.socket() as again:
            assert again.start("de", "ja", token=started["token"])["session"] == name
            assert not server.hub.past.find(name)


def test_grows_while_it_is_exported() -> None:
    transcript = Transcript(("de",))
    found = []
    for number in "12":
        transcript.end((number, "de"), Caption(number, 0, "de", "Hallo.", final=True), held=False)
    for caption in transcript.finals:
        found.append(caption.utterance)
        transcript.end(("3", "de"), Caption("3", 0, "de", "Hallo.", final=True), held=False)
    assert found == ["1", "2"]


def test_not_kept() -> None:
    with running(keep_seconds=0, transcript_seconds=0) as server, server.socket() as socket:
        assert server.ask(f"/v1/sessions/{leave(server, socket)}/transcript").status == 404


def test_text_by_language() -> None:
    with running() as server, server.socket() as socket:
        name = socket.start("de", "ja")["session"]
        for utterance, text in enumerate(("we saw", "her duck")):
            say(socket, text, utterance=str(utterance))
            for _ in range(2):
                socket.until("final")
        path = f"/v1/sessions/{name}/transcript?format=txt"
        german = ["German", "", expected("we saw"), expected("her duck")]
        japanese = ["Japanese", "", expected("we saw", "ja"), expected("her duck", "ja")]
        original = ["English", "", "we saw", "her duck"]
        answer = server.ask(path)
        assert answer.text.splitlines() == [*german, "", *japanese]
        assert answer.headers["content-disposition"] == f'attachment; filename="{name[:8]}.txt"'
        one = server.ask(f"{path}&language=English&language=ja")
        assert one.text.splitlines() == [*original, "", *japanese]
        assert one.headers["content-disposition"] == f'attachment; filename="{name[:8]}-en-ja.txt"'
        both = server.ask(f"/v1/sessions/{name}/transcript?format=srt&language=en&language=ja").text
        lines = both.splitlines()[2:]
        assert [line for line in lines if line] == ["we saw", "her duck", *japanese[2:]]


def keep(past: PastSessions, name: str, text: str = "Hallo.") -> None:
    """Keep a session with one caption."""
    broadcast = Broadcast(("de",))
    broadcast.final(Caption("1", 0, "de", text, final=True), 0.0)
    past.keep(name, Begin(targets=("de",)), broadcast)


def names(past: PastSessions) -> str:
    return "".join(name for name in "123" if past.find(name))


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    past = PastSessions(10, lambda: now)
    monkeypatch.setattr(redraft.serve.sessions.rooms, "MOST", 2)
    for name in "123":
        keep(past, name)
    assert names(past) == "23"
    past.drop("3")  # it has started again
    assert names(past) == "2"
    monkeypatch.setattr(redraft.serve.sessions.rooms, "MOST_CHARACTERS", 1000)
    keep(past, "1", "ü" * 600)
    assert names(past) == "1"
    keep(past, "3", "u" * 2000)
    assert names(past) == ""
    keep(past, "2")
    now = 9.9
    past.sweep()
    assert names(past) == "2"
    now = 10.0
    past.sweep()
    assert names(past) == ""
