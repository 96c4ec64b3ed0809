"""Viewers on one replica of sessions on another, through a real Redis."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from itertools import count
from typing import Any
from unittest import mock

import pytest

from fanout.conftest import RedisServer, replica
from fanout.sessions import begin, fanout_of, seen, watch
from redraft.serve.sessions.live import LiveSession
from tests.serve.servers import Running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


def test_viewers_elsewhere(speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket, "de", "ja", source_language="en")
        say(socket, "we saw her", utterance="1")
        socket.until("final")
        socket.until("final")
        with watch(speakers, name) as here, watch(viewers, name) as there:
            say(socket, "her", utterance="2", final=False)
            heard = [each.until("partial") for each in (here, there)]
            assert heard[0][-1] == heard[1][-1]
            say(socket, "her duck", utterance="2", first=1)
            socket.say("end")
            heard = [before + each.until("done") for before, each in zip(heard, (here, there), strict=True)]
        texts = {"1": "we saw her", "2": "her duck"}
        both = [(name, target, expected(text, target)) for name, text in texts.items() for target in ("de", "ja")]
        assert sorted(finals(heard[0])) == sorted(finals(heard[1])) == sorted(both)
        about = viewers.ask(f"/v1/sessions/{name}").json
        assert about == {"session": name, "source_language": "en", "targets": ["de", "ja"], "done": True}
        for form in ("txt", "srt", "vtt", "jsonl"):
            path = f"/v1/sessions/{name}/transcript?format={form}"
            assert viewers.ask(path).text == speakers.ask(path).text != ""


def test_control_elsewhere(speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket)
        for utterance in "12":
            say(socket, "we saw", utterance=utterance)
            socket.until("final")
        with watch(viewers, name) as there:
            assert [each["utterance"] for each in (there.hear(), there.hear())] == ["1", "2"]
            socket.say("hide", utterance="1", language="de")
            assert there.until("hidden")[-1] == {
                "type": "hidden",
                "utterance": "1",
                "language": "de",
                "hidden": True,
                "decision": 1,
            }
            socket.say("correct", utterance="2", language="de", text="Wir sahen.")
            assert finals(there.until("final")) == [("2", "de", "Wir sahen.")]
            socket.say("pause")
            assert there.until("paused")[-1]["paused"]
            say(socket, "her duck", utterance="3")
            socket.until("final")
            with watch(viewers, name) as late:
                assert finals(late.until("paused")) == [("2", "de", "Wir sahen.")]
            socket.say("pause", paused=False)
            assert not there.until("paused")[-1]["paused"]
            assert finals(there.until("final")) == [("3", "de", expected("her duck"))]
            socket.say("hide", utterance="1", hidden=False)
            assert finals(there.until("final")) == [("1", "de", expected("we saw"))]
            socket.say("update", utterance="4", seq=0, text="it was", final=True, speaker="Speaker 1")
            assert there.until("final")[-1]["speaker"] == "Speaker 1"
            socket.say("name", speaker="Speaker 1", name="Anna")
            socket.until("named")
            address = f"/v1/sessions/{name}/transcript"
            eventually(lambda: viewers.ask(address).text.splitlines()[-1] == f"Anna: {expected('it was')}")
        lines = viewers.ask(f"/v1/sessions/{name}/transcript").text.splitlines()
        assert lines[:3] == [expected("we saw"), "Wir sahen.", expected("her duck")]


def test_hidden_not_in_redis(redis: RedisServer, speakers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket)
        say(socket, "we saw")
        socket.until("final")
        socket.say("pause")
        socket.until("paused")
        say(socket, "her duck", utterance="2")
        socket.until("final")
        key = f"redraft:session:{name}"
        eventually(lambda: b'"paused":true' in redis.ask("XRANGE", key, "-", "+"))
        kept = redis.ask("XRANGE", key, "-", "+")
        assert b'"utterance":"1"' in kept and b'"utterance":"2"' not in kept


def test_forgotten_elsewhere(redis: RedisServer, viewers: Running) -> None:
    with replica(redis, keep_seconds=0) as speakers:
        with speakers.socket() as socket:
            name = begin(socket)
            there = watch(viewers, name)
            with there as viewer:
                say(socket, "we saw")
                assert viewer.until("final")
                socket.connection.close()
                eventually(lambda: not seen(viewers, name))
        eventually(lambda: b"redraft:session" not in redis.ask("KEYS", "redraft:session:*"))
    assert viewers.ask(f"/v1/sessions/{name}").status == 404
    assert viewers.ask("/v1/sessions/nobody").json["error"]["code"] == "missing"


def test_moved_session(
    redis: RedisServer, speakers: Running, viewers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the clock of the later replica is behind."""
    ever_earlier = count(2_000_000_000, -20)
    monkeypatch.setattr(time, "time", lambda: float(next(ever_earlier)))
    with replica(redis) as others, speakers.socket() as socket:
        started = socket.start(method="ar")
        name, token = started["session"], started["token"]
        say(socket, "we saw")
        first = socket.until("final")[-1]
        with watch(viewers, name) as viewer:
            assert finals(viewer.until("final")) == [("1", "de", expected("we saw"))]
            with others.socket() as again:  # as a client does after a drop
                resumed = again.start(method="ar", token=token)
                assert (resumed["session"], resumed["resumed"]) == (name, False)
                again.say("restore", finals=[first])
                say(again, "her duck", utterance="2")
                again.until("final")
                assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]
                with watch(viewers, name) as late:
                    assert [each[0] for each in finals([late.hear(), late.hear()])] == ["1", "2"]
            # The first replica has an older state, with which nobody goes on.
            with speakers.socket() as back:
                assert back.start(method="ar", token=token)["resumed"] is False
        assert socket.until("error")[-1]["code"] == "replaced"


def test_older_connection_is_slow(redis: RedisServer, speakers: Running) -> None:
    """The newer of two connections keeps the session, even if Redis answers the older one later."""
    moved, asked, answer = speakers.hub.fanout.moved, list[str](), asyncio.Event()

    async def slow(session: LiveSession) -> bool:
        asked.append(session.name)
        if len(asked) == 1:
            await answer.wait()
        return await moved(session)

    with speakers.socket() as socket:
        token = socket.start(method="ar")["token"]
    with mock.patch.object(speakers.hub.fanout, "moved", slow), speakers.socket() as older, speakers.socket() as newer:
        older.say("start", targets=["de"], token=token, connection=1)
        eventually(lambda: asked)
        newer.say("start", targets=["de"], token=token, connection=2)
        time.sleep(0.1)
        speakers.call(answer.set)
        assert newer.hear()["resumed"] is True
        assert older.until("error")[-1]["code"] == "replaced"
        say(newer, "we saw")
        assert finals(newer.until("final")) == [("1", "de", expected("we saw"))]


def test_older_connection_elsewhere(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    """An older connection that another server reads late does not get the session of a newer one."""
    with replica(redis) as others, speakers.socket() as late, ExitStack() as stack:
        with speakers.socket() as socket:
            started = socket.start(method="ar")
            known = {"token": started["token"], "server": started["server"]}
            say(socket, "we saw")
            first = socket.until("final")[-1]
        viewer = stack.enter_context(watch(viewers, started["session"]))
        assert finals(viewer.until("final")) == [("1", "de", expected("we saw"))]
        newer = stack.enter_context(others.socket())
        assert newer.start(method="ar", **known, connection=2)["resumed"] is False
        newer.say("restore", finals=[first])
        say(newer, "her duck", utterance="2")
        newer.until("final")
        assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]
        assert late.start(method="ar", **known, connection=1)["type"] == "started"  # before Redis knows
        assert late.until("error")[-1]["code"] == "replaced"
        eventually(lambda: not speakers.hub.sessions)
        say(newer, "we saw her", utterance="3")
        assert newer.until("final")[-1]["utterance"] == "3"
        assert finals(viewer.until("final")) == [("3", "de", expected("we saw her"))]


def test_older_connection_first_in_redis(redis: RedisServer, speakers: Running) -> None:
    """An older connection that another server reads late costs the newer one nothing, even if only it is in Redis."""
    with replica(redis) as others, others.socket() as late:
        with speakers.socket() as socket:
            started = socket.start(method="ar")
            known = {"token": started["token"], "server": started["server"]}
            say(socket, "we saw")
            socket.until("final")
        with speakers.socket() as newer:
            assert newer.start(method="ar", **known, connection=2)["resumed"] is True
            assert late.start(method="ar", **known, connection=1)["resumed"] is False
            log = f"redraft:session:{started['session']}"
            eventually(lambda: others.hub.name.encode() in redis.ask("XRANGE", log, "-", "+"))
        with speakers.socket() as newest:
            assert newest.start(method="ar", **known, connection=3)["resumed"] is True
            assert late.until("error")[-1]["code"] == "replaced"
            say(newest, "her duck", utterance="2")
            assert [each[0] for each in finals(newest.until("final") + newest.until("final"))] == ["1", "2"]


def test_viewers_do_not_translate(redis: RedisServer, viewers: Running) -> None:
    with viewers.socket() as socket:
        refused = socket.start()
        assert (refused["code"], refused["fatal"]) == ("missing", True)
    answer = viewers.ask("/v1/translate", {"text": "we saw", "targets": ["de"]})
    assert (answer.status, answer.json["error"]["code"]) == (404, "missing")
    assert viewers.ask("/v1/offer").json["error"]["code"] == "capacity"
    with replica(redis) as speakers:
        eventually(lambda: viewers.ask("/v1/offer").status == 200)
        assert viewers.ask("/v1/offer").json == speakers.ask("/v1/offer").json
    assert viewers.ask("/ready").status == viewers.ask("/watch").status == viewers.ask("/overlay").status == 200


def test_places_count_on_every_replica(redis: RedisServer, speakers: Running) -> None:
    with replica(redis, viewers_only=True, viewers=1) as viewers, speakers.socket() as socket:
        name = begin(socket)
        with watch(viewers, name), viewers.socket(f"/v1/watch/{name}") as second:
            assert second.hear()["code"] == "limit"


@pytest.mark.parametrize("settings", [{}, {"viewers_only": True}])
def test_unwatched_mirror(
    redis: RedisServer, speakers: Running, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft_fanout.fanout._IDLE", 0.0)
    with replica(redis, **settings) as other, speakers.socket() as socket:
        name = begin(socket)
        with watch(other, name):
            assert list(fanout_of(other).mirrors) == [name]
            assert "redraft_viewers 1.0" in other.ask("/metrics").text
        eventually(lambda: not fanout_of(other).mirrors)
        eventually(lambda: name.encode() not in redis.ask("PUBSUB", "CHANNELS"))


def test_languages_elsewhere(speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket, "de", "ja", room="hall-1")
        say(socket, "we saw", utterance="1")
        socket.until("final")
        socket.until("final")
        eventually(lambda: seen(viewers, name))
        paths = [f"/v1/watch/{name}?language=ja", "/v1/rooms/hall-1/watch?language=ja", f"/v1/watch/{name}"]
        with viewers.socket(paths[0]) as one, viewers.socket(paths[1]) as room, viewers.socket(paths[2]) as every:
            for each in (one, room):
                assert finals(each.until("final")) == [("1", "ja", expected("we saw", "ja"))]
            say(socket, "her", utterance="2", final=False)
            say(socket, "her duck", utterance="2", first=1)
            socket.until("final")
            socket.until("final")
            socket.say("hide", utterance="1")
            for language, text in (("de", "Ente."), ("ja", "アヒル。")):
                socket.say("correct", utterance="2", language=language, text=text)
            socket.say("end")
            heard = [one.until("done"), room.until("room"), every.until("done")]
            while heard[1][-1]["state"] != "over":
                heard[1] += room.until("room")
        japanese = [("2", "ja", expected("her duck", "ja")), ("2", "ja", "アヒル。")]
        for messages in heard[:2]:
            found = finals(messages)  # a correction replaces a caption that has not been sent
            assert found and found == japanese[-len(found) :]
            assert {each["language"] for each in messages if "language" in each} == {"ja"}
        assert {language for _, language, _ in finals(heard[2])} == {"de", "ja"}
