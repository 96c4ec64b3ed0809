"""Faults around a server: clients that vanish or read nothing, and a stop during a talk."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from functools import partial
from socket import SO_LINGER, SO_RCVBUF, SOL_SOCKET
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from redraft import deadlines, protocol
from redraft.serve.sessions.broadcast import Outbox
from tests.serve.fakes import CachedModel
from tests.serve.servers import SECONDS, running
from tests.serve.talking import all_given_back, expected, finals, say
from tests.waiting import eventually


def test_killed_during_pass() -> None:
    reached, go_on = threading.Event(), threading.Event()

    def hold(_: Any) -> bool:
        reached.set()
        assert go_on.wait(SECONDS)
        return False

    with running(CachedModel(1, broken=hold), keep_seconds=0) as server:
        with server.socket() as socket:
            token = socket.start("de", "ja")["token"]
            say(socket, "we saw her duck")
            assert reached.wait(SECONDS)
            linger = b"\x01\0\0\0\0\0\0\0"
            socket.connection.socket.setsockopt(SOL_SOCKET, SO_LINGER, linger)
            socket.connection.socket.close()
            eventually(lambda: protocol.public_name(token) not in server.hub.sessions)
            assert server.engine.scheduler.lanes == 2  # the engine has not come to it yet
            go_on.set()
        eventually(lambda: all_given_back(server))
        assert "redraft_sessions 0.0" in server.ask("/metrics").text
        with server.socket() as socket:
            socket.start()
            say(socket, "we saw")
            assert finals(socket.until("final")) == [("1", "de", expected("we saw"))]


@pytest.mark.slow
def test_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(keep_seconds=0, sessions=10_000, sessions_per_address=10_000, starts_per_second=10_000) as server:
        begun: list[str] = []
        # Capacity is another matter.
        monkeypatch.setattr(server.engine.scheduler, "check_load", lambda wanted: None)

        def come_and_go() -> None:
            for number in range(60):
                with server.socket(close_timeout=1) as socket, suppress(ConnectionClosed):
                    if number % 3:
                        begun.append(socket.start()["type"])
                    if number % 3 == 2:
                        say(socket, "we saw", final=False)

        threads = [threading.Thread(target=come_and_go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(9 * SECONDS)
            assert not thread.is_alive()
        eventually(lambda: all_given_back(server))
        assert begun == ["started"] * 160
        assert server.engine.scheduler.failed_passes == 0
        assert server.ask("/health").status == 200
        hub = server.hub
        eventually(lambda: not hub.sessions)
        # What remains: the server itself, its sweeper, and whoever asked for its health.
        eventually(lambda: not server.server.server_state.connections)
        eventually(lambda: len(asyncio.all_tasks(server.loop)) <= 4)


def test_slow_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "SLOW_READER", 0.3)
    with running(updates_per_second=10_000) as server:
        with server.socket(max_queue=1, close_timeout=0.5) as socket, server.socket() as other:
            token = socket.start(method="ar")["token"]
            other.start()
            raw = socket.connection.socket
            raw.setsockopt(SOL_SOCKET, SO_RCVBUF, 2048)
            session = server.hub.owned(token)
            # From within, since a client that reads nothing cannot be made to send megabytes in little time.
            big = protocol.Error(code="stale", message="x" * 50_000).frame
            until = time.monotonic() + SECONDS
            while session.broadcast.owner is not None and time.monotonic() < until:
                server.call(partial(session.broadcast.send, big, object()))
                time.sleep(0.002)
            assert session.broadcast.owner is None
            say(other, "we saw")
            assert finals(other.until("final"))
        assert "redraft_slow_readers_total 1.0" in server.ask("/metrics").text
        with server.socket() as socket:
            socket.start(token=token)
            error = socket.hear()
            assert (error["code"], error["fatal"]) == ("slow", False)


def test_silent_client() -> None:
    with running(slots=1) as server, server.socket() as silent, server.socket() as other:
        silent.start()
        say(silent, "we saw", final=False)
        silent.until("partial")
        other.start()
        say(other, "her duck")
        assert finals(other.until("final")) == [("1", "de", expected("her duck"))]
        say(silent, "we saw her", first=1)
        assert finals(silent.until("final")) == [("1", "de", expected("we saw her"))]


def test_backpressure() -> None:
    # The client's library reads while the test still writes.
    with running(updates_per_second=10_000) as server, server.socket(max_queue=None) as socket:
        socket.start(method="ar")
        for number in range(300):
            say(socket, "we", "we saw", utterance=str(number))
        socket.say("end")
        heard = finals(socket.until("done"))
        assert [name for name, _, _ in heard] == [str(number) for number in range(300)]
        assert {text for _, _, text in heard} == {expected("we saw")}


def test_drain() -> None:
    with running() as server:
        with server.socket() as socket, server.socket() as late:
            token = socket.start("de", "ja")["token"]
            say(socket, "we saw her duck")
            say(socket, "it was", utterance="2", final=False)
            eventually(lambda: "2" in server.hub.owned(token).stream)
            server.call(server.server.stop)
            heard = socket.until("error")
            assert sorted(target for _, target, _ in finals(heard)) == ["de", "ja"]
            assert (heard[-1]["code"], heard[-1]["fatal"]) == ("draining", True)
            with pytest.raises(ConnectionClosed) as closed:
                socket.hear()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
            with suppress(ConnectionClosed):  # that connection had not started yet
                assert late.start()["code"] == "draining"
        eventually(lambda: server.server.should_exit)


def test_drain_sends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The web server cuts connections when it ends, also while a slow reader is sent the last caption."""
    get = Outbox.get

    async def slowly(outbox: Outbox) -> protocol.Frame | None:
        message = await get(outbox)
        await asyncio.sleep(0.3)
        return message

    monkeypatch.setattr(Outbox, "get", slowly)
    with running() as server, server.socket() as socket:
        socket.start()
        say(socket, "we saw her duck")
        until = [socket.hear() for _ in range(2)]
        server.call(server.server.stop)
        assert finals([*until, *socket.until("error")]) == [("1", "de", expected("we saw her duck"))]


def test_connect_while_draining(monkeypatch: pytest.MonkeyPatch) -> None:
    """An admission that takes longer than the drain: nothing else closes connections where the process goes on."""
    with running() as server:
        opened, lanes = asyncio.Event(), server.hub.admission.lanes

        async def slow(*wanted: Any) -> Any:
            await opened.wait()
            return await lanes(*wanted)

        monkeypatch.setattr(server.hub.admission, "lanes", slow)
        with server.socket() as socket:
            socket.say("start", targets=["de"])
            eventually(lambda: bool(server.hub.sessions))
            (session,) = server.hub.sessions.values()
            asyncio.run_coroutine_threadsafe(server.hub.drain(), server.loop).result(20)
            server.call(opened.set)
            with (
                server.socket(f"/v1/watch/{session.name}") as viewer,
                server.socket("/v1/rooms/hall-1/watch") as in_room,
            ):
                assert [socket.until("error")[-1]["code"], viewer.until("error")[-1]["code"]] == ["draining"] * 2
                for each in (socket, viewer, in_room):
                    with pytest.raises(ConnectionClosed) as closed:
                        each.until("never")
                    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012


def test_server_ends_without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "WITHOUT_ENGINE", 2.0)
    with running() as server, server.socket() as socket:
        socket.start()
        monkeypatch.setattr(server.engine.scheduler, "step", None)
        say(socket, "we saw")
        assert socket.until("error")[-1]["code"] == "engine"
        eventually(lambda: server.loop.is_running() is False)
        assert server.server.failed


def test_engine_crash() -> None:
    with running() as server, server.socket() as socket:
        socket.start()
        server.engine.scheduler.step = None  # type: ignore[assignment, method-assign]
        say(socket, "we saw")
        error = socket.until("error")[-1]
        assert (error["code"], error["fatal"]) == ("engine", True)
        assert server.ask("/health").status == server.ask("/ready").status == 503
        with server.socket() as other:
            assert other.start()["code"] == "engine"


def test_engine_crash_over_http() -> None:
    with running() as server:
        server.engine.scheduler.step = None  # type: ignore[assignment, method-assign]
        began = time.monotonic()
        answer = server.ask("/v1/translate", {"text": "we saw", "targets": ["de"]})
        assert answer.status == 503 and answer.json["error"]["code"] == "engine"
        assert time.monotonic() - began < 10
