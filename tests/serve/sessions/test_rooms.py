"""Rooms: links that stay valid from session to session, and access to them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError
from websockets.exceptions import ConnectionClosed

from redraft.errors import OptionError
from redraft.protocol import Begin
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys, new_key
from redraft.serve.sessions.broadcast import Outbox
from redraft.serve.sessions.rooms import Rooms, check_rooms
from redraft.serve.settings import load
from tests.serve.servers import Running, running
from tests.serve.sessions.watching import ROOM, WATCH, state, talk
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def test_viewer_of_sessions(server: Running) -> None:
    with server.socket(WATCH) as viewer:
        assert viewer.hear() == {"type": "room", "room": ROOM, "state": "waiting", "targets": []}
        assert server.ask(f"/v1/rooms/{ROOM}").json["state"] == "waiting"
        assert server.ask(f"/v1/rooms/{ROOM}/transcript").status == 404
        for text in ("we saw", "her duck"):  # utterances of the same name, too
            with server.socket() as socket:
                name = talk(socket, text)
                assert state(begun := viewer.hear()) == ("room", "live", name)
                assert begun["targets"] == ["de"]
                assert server.ask(f"/v1/rooms/{ROOM}").json == begun
                assert finals(viewer.until("final")) == [("1", "de", expected(text))]
                socket.say("end")
                socket.until("done")
            assert state(viewer.until("room")[-1]) == ("room", "over", name)
            assert server.ask(f"/v1/rooms/{ROOM}/transcript").text == expected(text) + "\n"
            with server.socket(WATCH) as late:  # the last session is kept for a while
                assert state(late.hear()) == ("room", "over", name)
                assert finals([late.hear()]) == [("1", "de", expected(text))]


def test_one_session(server: Running) -> None:
    with server.socket() as first, server.socket() as second:
        talk(first, "we saw")
        refused = second.start(room=ROOM)
        assert (refused["code"], refused["fatal"]) == ("room", True)
        say(first, "her duck", utterance="2")
        assert finals(first.until("final")) == [("2", "de", expected("her duck"))]
        by_post = server.ask("/v1/sessions", {"targets": ["de"], "room": ROOM})
        assert (by_post.status, by_post.json["error"]["code"]) == (409, "room")


def test_take_over(server: Running) -> None:
    with server.socket(WATCH) as viewer, server.socket() as first, server.socket() as second:
        token = first.start(room=ROOM)["token"]
        name = talk(second, "we saw", take_over=True)
        assert first.until("error")[-1]["code"] == "replaced"
        with pytest.raises(ConnectionClosed):
            first.hear()
        heard = viewer.until("final")
        assert [each["state"] for each in heard if each["type"] == "room"] == ["waiting", "live", "live"]
        assert server.ask(f"/v1/rooms/{ROOM}").json["session"] == name
        with server.socket() as again:  # it has ended, and takes the room from nobody
            again.start(token=token, room=ROOM)
            assert again.until("done")
        assert server.ask(f"/v1/rooms/{ROOM}").json["session"] == name


def test_disconnected_session(server: Running) -> None:
    with server.socket() as first:
        first.start(room=ROOM)
    room = server.hub.rooms.find(ROOM)
    eventually(lambda: room.session is not None and not room.session.in_use)
    with server.socket() as second:
        talk(second, "we saw")


def test_resumed_session(server: Running) -> None:
    with server.socket(WATCH) as viewer:
        with server.socket() as socket:
            token = socket.start(room=ROOM)["token"]
        with server.socket() as socket:
            started = socket.start(token=token, room=ROOM)
            assert (started["resumed"], started["room"]) == (True, ROOM)
            say(socket, "we saw")
            assert len([each for each in viewer.until("final") if each["type"] == "room"]) == 2
        with running() as other, other.socket(WATCH) as waiting, other.socket() as socket:
            started = socket.start(token=token, room=ROOM)  # a server that was started anew
            assert (started["resumed"], started["room"]) == (False, ROOM)
            assert [state(waiting.hear())[1] for _ in range(2)] == ["waiting", "live"]


def test_refused_session(server: Running) -> None:
    with server.socket(WATCH) as viewer, server.socket() as first, server.socket() as second:
        name = talk(first, "we saw")
        assert second.start("xx-nonsense", room=ROOM, take_over=True)["code"] == "option"
        say(first, "her duck", utterance="2")
        viewer.until("final")
        assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]
        assert server.ask(f"/v1/rooms/{ROOM}").json["session"] == name


def test_forgotten_session() -> None:
    with running(keep_seconds=0, transcript_seconds=1) as server, server.socket(WATCH) as viewer:
        with server.socket() as socket:
            talk(socket, "we saw")
        assert [viewer.until("room")[-1]["state"] for _ in range(3)] == ["waiting", "live", "over"]
        eventually(lambda: server.ask(f"/v1/rooms/{ROOM}").json["state"] == "waiting")
    eventually(lambda: not server.hub.rooms._rooms)  # who has left leaves nothing behind


@pytest.mark.parametrize("name", ["", "Hall", "hall 1", "-hall", "h" * 64, "hall\n", "../hall", "日本"])
def test_names_of_rooms(name: str) -> None:
    with pytest.raises(ValidationError):
        Begin(targets=("de",), room=name)


def test_invalid_name(server: Running) -> None:
    with server.socket("/v1/rooms/Hall/watch") as viewer:
        assert viewer.hear()["code"] == "room"
    assert server.ask("/v1/rooms/Hall").status == 404


def test_limited_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.serve.sessions.hub._WAITING", 2)
    with running(viewers=1) as server, server.socket(WATCH) as first:
        first.hear()
        with server.socket(WATCH) as second:
            assert second.hear()["code"] == "limit"
        with server.socket("/v1/rooms/b/watch") as other, server.socket("/v1/rooms/c/watch") as third:
            assert (other.hear()["type"], third.hear()["code"]) == ("room", "capacity")


# Who may use a room


def test_owner(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    stage, hall = new_key(path, "stage"), new_key(path, "hall")
    with running(keys=path) as server:
        with server.socket() as socket:
            talk(socket, "we saw", key=stage)
        for take_over in (False, True):
            with server.socket() as socket:
                assert socket.start(room=ROOM, key=hall, take_over=take_over)["code"] == "room"
        with server.socket() as socket:
            talk(socket, "we saw", key=stage)
        with server.socket(WATCH) as viewer:  # whoever knows its name may watch
            assert viewer.hear()["state"] == "live"


def test_assigned_rooms(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    stage, hall = new_key(path, "stage"), new_key(path, "hall")
    with running(keys=path, rooms={ROOM: ("stage",), "open": ()}) as server:

        def refused(room: str, key: str) -> bool:
            with server.socket() as socket:
                return socket.start(room=room, key=key, take_over=True).get("code") == "room"

        assert refused(ROOM, hall) and refused("other", hall)
        assert not (refused(ROOM, stage) or refused("open", stage) or refused("open", hall))


def test_settings(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text('[rooms]\nhall-1 = ["stage"]\nopen = []\n')
    rooms = load(tmp_path / "serve.toml").rooms
    assert rooms == {"hall-1": ("stage",), "open": ()}
    with pytest.raises(OptionError, match="the setting keys is missing"):
        check_rooms(rooms, None)
    new_key(tmp_path / "keys", "hall")
    with pytest.raises(OptionError, match="not in the file of keys"):
        check_rooms(rooms, ApiKeys(tmp_path / "keys"))
    with pytest.raises(OptionError, match="name of a room"):
        check_rooms({"Hall": ()}, None)


def test_transcript_file(tmp_path: Path) -> None:
    with running(transcripts=tmp_path) as server, server.socket() as socket:
        name = talk(socket, "we saw")
        eventually(lambda: list(tmp_path.iterdir()))
        assert [path.name for path in tmp_path.iterdir()] == [f"{date.today()}-{ROOM}-de-{name}.jsonl"]


def test_rooms_opened_by_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.serve.sessions.rooms._MOST_OPENED", 16)
    rooms = Rooms({}, 100)
    for number in range(16):
        rooms.enter(f"junk-{number}", Outbox(9), 9, "10.0.0.1")
    with pytest.raises(Refused) as refused:
        rooms.enter("junk-16", Outbox(9), 9, "10.0.0.1")
    assert refused.value.code == "capacity"
    rooms.enter("junk-1", Outbox(9), 9, "10.0.0.1")
    rooms.enter("hall", Outbox(9), 9, "10.0.0.2")
