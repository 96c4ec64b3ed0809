"""Rooms whose sessions and viewers are on different replicas."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from fanout.conftest import RedisServer, replica
from fanout.sessions import fanout_of
from redraft.serve.access import new_key
from tests.serve.servers import Running
from tests.serve.sessions.watching import ROOM, WATCH, state, talk
from tests.serve.talking import expected, finals
from tests.waiting import eventually


def room_of(server: Running) -> Any:
    return server.ask(f"/v1/rooms/{ROOM}").json


def test_room_across_replicas(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    with replica(redis) as others, viewers.socket(WATCH) as viewer:
        assert viewer.hear()["state"] == room_of(viewers)["state"] == "waiting"
        for server, text in ((speakers, "we saw"), (others, "her duck"), (speakers, "we saw")):
            with server.socket() as socket:
                name = talk(socket, text)
                assert state(viewer.until("room")[-1]) == ("room", "live", name)
                assert finals(viewer.until("final")) == [("1", "de", expected(text))]
                assert room_of(viewers)["session"] == name
                socket.say("end")
                socket.until("done")
                assert state(viewer.until("room")[-1]) == ("room", "over", name)
            assert viewers.ask(f"/v1/rooms/{ROOM}/transcript").text == expected(text) + "\n"
            with viewers.socket(WATCH) as late:
                assert state(late.hear()) == ("room", "over", name)
                assert finals(late.until("final")) == [("1", "de", expected(text))]


def test_one_session_on_all_replicas(redis: RedisServer, speakers: Running) -> None:
    with replica(redis) as others, speakers.socket() as first, others.socket() as second, others.socket() as third:
        name = talk(first, "we saw")
        refused = second.start(room=ROOM)
        assert (refused["code"], refused["fatal"]) == ("room", True)
        eventually(lambda: room_of(others).get("session") == name)
        later = talk(third, "her duck", take_over=True)
        assert first.until("error")[-1]["code"] == "replaced"
        eventually(lambda: room_of(speakers).get("session") == later)
        by_post = speakers.ask("/v1/sessions", {"targets": ["de"], "room": ROOM})
        assert (by_post.status, by_post.json["error"]["code"]) == (409, "room")


def test_room_freed_elsewhere(redis: RedisServer, speakers: Running) -> None:
    with replica(redis) as others:
        with speakers.socket() as socket:
            talk(socket, "we saw")
            lease = f"redraft:room:{ROOM}:lease"
            eventually(lambda: redis.ask("GET", lease) != b"$-1\r\n")
        eventually(lambda: redis.ask("GET", lease) == b"$-1\r\n")
        with others.socket() as socket:
            talk(socket, "her duck")


def test_room_stays_free_after_a_slow_lease(redis: RedisServer, speakers: Running) -> None:
    """A lease that was on its way to Redis when its owner left does not come back."""
    client, slow = fanout_of(speakers).shared._redis, asyncio.Event()
    renew = client.set

    async def late(key: str, value: str, *, nx: bool = False, **rest: Any) -> Any:
        if key.endswith(":lease") and not nx:
            slow.set()
            await asyncio.sleep(0.3)
        return await renew(key, value, nx=nx, **rest)

    client.set = late
    lease = f"redraft:room:{ROOM}:lease"
    with speakers.socket() as socket:
        talk(socket, "we saw")
        eventually(slow.is_set)
    eventually(lambda: redis.ask("GET", lease) == b"$-1\r\n")
    time.sleep(0.4)
    assert redis.ask("GET", lease) == b"$-1\r\n"


def test_room_owner_on_all_replicas(redis: RedisServer, tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    stage, guest = (new_key(path, name) for name in ("stage", "guest"))
    with replica(redis, keys=path) as one, replica(redis, keys=path) as two:
        with one.socket() as socket:
            talk(socket, "we saw", key=stage)
            socket.say("end")
            socket.until("done")
        with two.socket() as socket:
            assert socket.start(room=ROOM, key=guest, take_over=True)["code"] == "room"
        with two.socket() as socket:
            talk(socket, "her duck", key=stage)


def test_room_on_old_redis(redis: RedisServer, old_redis_url: str, tmp_path: Path) -> None:
    """Rooms are kept from other keys and sessions on the oldest version that is accepted."""
    path = tmp_path / "keys.txt"
    stage, guest = (new_key(path, name) for name in ("stage", "guest"))
    old = {"keys": path, "fanout": old_redis_url}
    with replica(redis, **old) as one, replica(redis, **old) as two, one.socket() as socket:
        talk(socket, "we saw", key=stage)
        with two.socket() as other:
            assert other.start(room=ROOM, key=guest)["code"] == "room"
        with two.socket() as other:
            assert other.start(room=ROOM, key=stage)["code"] == "room"


def test_commands_that_redis_refuses(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with replica(redis) as one, one.socket() as socket:
        redis.ask("ACL", "SETUSER", "default", "-set")
        assert socket.start(room=ROOM)["type"] == "started"
        eventually(lambda: "no permissions" in caplog.text)
