"""Sessions over real websockets: messages both ways, and no loss after a drop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from redraft import deadlines
from tests.serve.fakes import CachedModel
from tests.serve.servers import SECONDS, Running, Socket, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def test_start_to_done(server: Running) -> None:
    with server.socket() as socket:
        started = socket.start("de", "ja", method="ar", source_language="en")
        assert (started["type"], started["protocol"], started["resumed"]) == ("started", 1, False)
        assert started["targets"] == ["de", "ja"]
        say(socket, "we saw", "we saw her duck")
        socket.say("end")
        heard = socket.until("done")
        assert sorted(finals(heard)) == [
            ("1", "de", expected("we saw her duck")),
            ("1", "ja", expected("we saw her duck", "ja")),
        ]
        stats = [each for each in heard if each["type"] == "stats"][-1]
        assert stats["targets"]["de"]["plain_passes"] == stats["targets"]["de"]["passes"] > 0
        assert stats["lag_p95_ms"] >= stats["lag_ms"] > 0
        final = next(each for each in heard if each["type"] == "final")
        assert final["source"] == "we saw her duck" and final["time"] == 1.0 and final["start"] == 0.0
        with pytest.raises(ConnectionClosed) as closed:
            socket.hear()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000


def test_partial_captions(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de", options={"beta": 0, "mask_k": 1})
        say(socket, "we saw", final=False)
        partial = socket.until("partial")[-1]
        assert partial["text"] + partial["unstable"] == expected("we saw") and partial["unstable"]
        found = [partial[name] for name in ("utterance", "seq", "language", "source")]
        assert found == ["1", 0, "de", "we saw"]
        assert partial["lag_ms"] > 0
        say(socket, "we saw her", first=1)
        assert finals(socket.until("final")) == [("1", "de", expected("we saw her"))]


def test_stats_say_what_the_model_can_do(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for able in ("", "this model can do little"):
        monkeypatch.setattr(server.engine.scheduler, "able", lambda able=able: able)
        with server.socket() as socket:
            socket.start("de")
            say(socket, "we saw")
            socket.say("end")
            stats = [each for each in socket.until("done") if each["type"] == "stats"]
            assert stats[-1].get("able") == (able or None)


def test_last_stats(server: Running) -> None:
    with server.socket() as socket:
        socket.start()
        say(socket, "we saw", "we saw her", "we saw her duck")
        # The first counts come at once, maybe before the last caption.
        while not (counts := socket.until("stats")[-1]["targets"]["de"])["shown"]:
            assert counts["updates"] < 3


def test_drop(server: Running) -> None:
    with server.socket() as socket:
        token = socket.start()["token"]
        for utterance in ("1", "2"):
            say(socket, f"we saw {utterance}", utterance=utterance)
            socket.until("final")
        socket.say("ack", utterance="1", language="de")
        say(socket, "and", utterance="3", final=False)
        socket.until("partial")
    with server.socket() as socket:
        assert socket.start(token=token)["resumed"] is True
        heard = socket.until("partial")
        assert finals(heard) == [("2", "de", expected("we saw 2"))]
        assert heard[-1]["utterance"] == "3"
        # What was sent before the drop may be sent again.
        say(socket, "we saw 2", utterance="2")
        say(socket, "and", utterance="3", final=False)
        say(socket, "and it was", utterance="3", first=1)
        socket.say("end")
        assert finals(socket.until("done")) == [("3", "de", expected("and it was"))]
    with server.socket() as socket:  # even after its end
        assert socket.start(token=token)["resumed"] is True
        assert [name for name, _, _ in finals(socket.until("done"))] == ["2", "3"]
        text = server.ask(f"/v1/sessions/{server.hub.owned(token).name}/transcript?format=jsonl").text
        assert text.count('"type": "final"') == 3


def test_restore(server: Running) -> None:
    token = "t" * 32
    with server.socket() as socket:
        started = socket.start("de", "ja", token=token, options={"context": 1})
        assert (started["resumed"], started["token"]) == (False, token)
        has = {"type": "final", "seq": 4, "text": "schon da", "source": "there already", "start": 2.0, "time": 3.0}
        socket.say("restore", finals=[{**has, "utterance": "1", "language": target} for target in ("de", "ja")])
        socket.say("restore", finals=[{**has, "utterance": "2", "language": "de"}])
        say(socket, "there already", utterance="1")  # passed over
        say(socket, "there already", utterance="2")  # for the language that is missing
        say(socket, "we saw", utterance="3")
        socket.say("end")
        assert sorted((name, target) for name, target, _ in finals(socket.until("done"))) == [
            ("2", "ja"),
            ("3", "de"),
            ("3", "ja"),
        ]
    rows = server.ask(f"/v1/sessions/{started['session']}/transcript?language=de").text.splitlines()
    assert rows[:2] == ["schon da", "schon da"] and len(rows) == 3


def test_drop_before_all_is_restored(server: Running) -> None:
    """A session that its server has forgotten begins again until all has arrived that was in it."""
    with server.socket() as socket:
        started = socket.start()
        known = {"token": started["token"], "server": started["server"]}
        say(socket, "we saw")
        kept = socket.until("final")[-1]
        server.forget(server.hub.owned(started["token"]))
    for _ in range(2):  # what was on its way is lost
        with server.socket() as socket:
            assert socket.start(**known)["resumed"] is False
    with server.socket() as socket:
        assert socket.start(**known)["resumed"] is False
        socket.say("restore", finals=[kept])
        say(socket, "her duck", utterance="2")
        socket.until("final")
    with server.socket() as socket:
        assert socket.start(**known)["resumed"] is True
        assert [each.name for each in server.hub.owned(started["token"]).transcript.ended] == ["1", "2"]


def test_second_connection(server: Running) -> None:
    with server.socket() as first:
        token = first.start()["token"]
        with server.socket() as second:
            second.start(token=token)
            assert first.until("error")[-1]["code"] == "replaced"
            with pytest.raises(ConnectionClosed):
                first.hear()
            say(second, "we saw")
            second.until("final")


def test_older_connection_is_read_later(server: Running) -> None:
    """A server that is slow to read an older connection does not let it end a newer one."""
    with server.socket() as first:
        started = first.start()
    with server.socket() as older, server.socket() as newer:
        assert newer.start(token=started["token"], connection=2, server=started["server"])["resumed"] is True
        refused = older.start(token=started["token"], connection=1, server="another")
        assert (refused["code"], refused["fatal"]) == ("replaced", True)
        say(newer, "we saw")
        assert finals(newer.until("final")) == [("1", "de", expected("we saw"))]


def test_resuming_without_number(server: Running) -> None:
    with server.socket() as socket:
        refused = socket.start(token="x" * 22, connection=0)
        assert (refused["code"], refused["field"], refused["fatal"]) == ("protocol", "connection", True)
        assert "from 1 on" in refused["message"]


def test_concurrent_connections(server: Running) -> None:
    for number in range(5):
        with server.socket() as first, server.socket() as second:
            for socket in (first, second):
                socket.say("start", targets=["de"], token=f"both{number}" + "x" * 30, connection=1)
            resumed = {socket: socket.hear()["resumed"] for socket in (first, second)}
            assert sorted(resumed.values()) == [False, True]
            last = next(socket for socket, later in resumed.items() if later)
            say(last, "we saw")
            assert finals(last.until("final")) == [("1", "de", expected("we saw"))]


def test_viewers(server: Running) -> None:
    with server.socket() as socket:
        started = socket.start()
        say(socket, "we saw")
        socket.until("final")
        path = f"/v1/watch/{started['session']}"
        with server.socket(path) as viewer, server.socket(path) as other:
            assert finals([viewer.hear()]) == finals([other.hear()]) == [("1", "de", expected("we saw"))]
            viewer.say("update", utterance="9", seq=1, text="mine", final=True)
            viewer.say("end")
            say(socket, "her duck", utterance="2")
            assert [name for name, _, _ in finals(viewer.until("final"))] == ["2"]
            socket.say("end")
            assert "9" not in [each.get("utterance") for each in other.until("done")]
    with server.socket("/v1/watch/unknown") as viewer:
        assert viewer.hear()["fatal"] is True


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("nonsense", "protocol"),
        ('{"type": "end"}', "protocol"),
        ('{"type": "start", "targets": ["de"], "protocol": 2}', "version"),
        ('{"type": "start", "targets": []}', "protocol"),
        ('{"type": "start", "targets": ["de"], "method": "bild"}', "option"),
    ],
)
def test_invalid_start(server: Running, message: str, code: str) -> None:
    with server.socket() as socket:
        socket.connection.send(message)
        error = socket.hear()
        assert (error["type"], error["code"], error["fatal"]) == ("error", code, True)
        with pytest.raises(ConnectionClosed):
            socket.hear()


def test_invalid_messages(server: Running) -> None:
    with server.socket() as socket:
        socket.start()
        socket.connection.send(b"\x00\x01")
        socket.connection.send('{"type": "update", "utterance": "1", "seq": -1, "text": ""}')
        socket.say("start", targets=["de"])
        say(socket, "we saw", first=5, final=False)
        socket.say("update", utterance="1", seq=4, text="older")
        errors = socket.until("error") + socket.until("error") + socket.until("error")
        while sum(each["type"] == "error" for each in errors) < 4:
            errors.append(socket.hear())
        errors = [each for each in errors if each["type"] == "error"]
        assert sorted(each["code"] for each in errors) == ["audio", "protocol", "protocol", "stale"]
        assert not any(each["fatal"] for each in errors)
        say(socket, "we saw her", first=6)
        assert finals(socket.until("final")) == [("1", "de", expected("we saw her"))]
        socket.say("update", utterance="1", seq=9, text="more")
        assert socket.until("error")[-1]["code"] == "stale"


def test_too_many_invalid_messages(server: Running) -> None:
    with server.socket() as socket:
        socket.start()
        for _ in range(20):
            socket.connection.send("[]")
        assert [each["fatal"] for each in (socket.hear() for _ in range(20))] == [False] * 19 + [True]
        with pytest.raises(ConnectionClosed):
            socket.hear()


def test_long_message(server: Running) -> None:
    with server.socket() as socket:
        too_long = json.dumps({"type": "update", "utterance": "0", "seq": 0, "text": "é" * 50_000}, ensure_ascii=False)
        # In one packet, so that the long one is there before the session is.
        at_once(socket, json.dumps({"type": "start", "targets": ["de"]}), too_long)
        started, error = socket.hear(), socket.hear()
        assert started["type"] == "started"
        assert (error["code"], error["fatal"]) == ("limit", False)
        say(socket, "we saw")
        assert finals(socket.until("final")) == [("1", "de", expected("we saw"))]


def test_huge_message(server: Running) -> None:
    with server.socket() as socket:
        socket.start()
        socket.connection.send("x" * 300_000)
        with pytest.raises(ConnectionClosed):
            socket.until("never")
        assert socket.connection.close_code == 1009
    assert server.ask("/health").status == 200


def at_once(socket: Socket, *texts: str) -> None:
    """Send several messages in one packet."""
    connection = socket.connection
    with connection.protocol_mutex:
        for text in texts:
            connection.protocol.send_text(text.encode())
        connection.socket.sendall(b"".join(connection.protocol.data_to_send()))


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ('"seq": 9, "text": "a\\ud800"', "protocol"),
        ('"seq": 3, "text": "a"', "stale"),
        ('"utterance": "0", "seq": 9, "text": "a"', "stale"),
    ],
)
def test_invalid_update(server: Running, wrong: str, code: str) -> None:
    with server.socket() as socket:
        socket.start(method="ar")
        say(socket, "it was", utterance="0")
        say(socket, "we saw", first=4, final=False)
        socket.connection.send(f'{{"type": "update", "utterance": "1", {wrong}}}')
        say(socket, "we saw her", first=10)
        socket.say("end")
        received = socket.until("done")
        assert [(each["code"], each["fatal"]) for each in received if each["type"] == "error"] == [(code, False)]
        assert finals(received) == [("0", "de", expected("it was")), ("1", "de", expected("we saw her"))]


def test_session_limits() -> None:
    with running(sessions=2, languages=3) as server, server.socket() as first, server.socket() as second:
        first.start("de", "ja")
        assert second.start("de", "ja")["code"] == "capacity"
        with server.socket() as third, server.socket() as fourth:
            assert third.start()["type"] == "started"
            refused = fourth.start()
            assert (refused["code"], refused["fatal"]) == ("capacity", True)
        assert 'redraft_refusals_total{code="capacity"} 2.0' in server.ask("/metrics").text


def test_start_rate() -> None:
    with running(starts_per_second=0.01) as server:
        for number in range(53):
            with server.socket() as socket:
                assert socket.start("xx-nonsense")["code"] == ("option" if number < 50 else "limit")


def test_start_timeout(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "FIRST_MESSAGE", 0.2)
    with server.socket() as socket:
        assert socket.hear()["code"] == "protocol"


def test_failing_pass() -> None:
    broken = CachedModel(1, broken=lambda scores: any(len(score.prefix) > 300 for score in scores))
    with running(broken) as server, server.socket() as good, server.socket() as bad:
        good.start(options={"beta": 0})
        bad.start(options={"beta": 0})
        say(bad, "poison" * 60)
        say(good, "we saw", "we saw her")
        assert finals(good.until("final")) == [("1", "de", expected("we saw her"))]
        error = bad.until("error")[-1]
        found = {name: error[name] for name in ("code", "final", "utterance", "language")}
        assert found == {"code": "translation", "final": True, "utterance": "1", "language": "de"}
        say(bad, "we saw", utterance="2")
        assert finals(bad.until("final")) == [("2", "de", expected("we saw"))]


def test_ended_sessions_make_room(tmp_path: Path) -> None:
    with running(sessions=2, languages=2, transcripts=tmp_path) as server:
        for number in range(4):
            with server.socket() as socket:
                name = socket.start("de", "ja")["session"]
                say(socket, f"we saw {number}")
                socket.say("end")
                socket.until("done")
            files = f"*-{name}.jsonl"
            eventually(lambda files=files: list(tmp_path.glob(files)))
            (kept,) = tmp_path.glob(files)
            eventually(lambda kept=kept: kept.read_text().count("\n") == 3)  # with what was spoken
            assert server.ask(f"/v1/sessions/{name}").json["done"] is True
        with server.socket() as first, server.socket() as second:
            assert [socket.start()["type"] for socket in (first, second)] == ["started"] * 2


def test_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners and viewers can tell an idle server from a lost one, by what each connection says first."""
    monkeypatch.setattr(deadlines, "HEARTBEAT", 0.1)
    with running() as server, server.socket() as owner:
        owner.say("start", targets=["de"], room="hall")
        started = json.loads(owner.connection.recv(SECONDS))
        assert (started["type"], started["heartbeat"]) == ("started", 0.1)
        paths = ("/v1/live", f"/v1/watch/{started['session']}", "/v1/rooms/hall/watch", "/v1/rooms/empty/watch")
        for path in paths:
            with nullcontext(owner) if path == "/v1/live" else server.socket(path) as socket:
                heard = [json.loads(socket.connection.recv(SECONDS)) for _ in range(6)]
                assert path == "/v1/live" or heard[0]["type"] == "alive"
                assert [each["heartbeat"] for each in heard[-3:]] == [0.1] * 3
