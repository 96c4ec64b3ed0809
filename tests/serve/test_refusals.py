"""Requests at the limits: refused with a reason or accepted and kept, and never more than allowed."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket as sockets
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from websockets.exceptions import ConnectionClosed

from redraft import deadlines
from redraft.captions.translation import Translation
from redraft.errors import OptionError
from redraft.protocol import Begin, Wanted, public_name
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys, Rate, new_key
from redraft.serve.service import Service
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession
from tests.serve.servers import SECONDS, Running, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.ERROR)
    return caplog


@pytest.mark.parametrize("hosts", [(), ("Stage.Example",)])
def test_host_names(hosts: tuple[str, ...]) -> None:
    with running(host="0.0.0.0", hosts=hosts) as other:
        for host in ("127.0.0.1:8765", "localhost", "stage.example", "STAGE.EXAMPLE:80"):
            assert other.ask("/v1/talk", headers={"host": host}).status == 200
        assert other.ask("/v1/talk", headers={"host": "other.example"}).status == (403 if hosts else 200)


@pytest.mark.parametrize("fields", [{"targets": ["日本語" * 20]}, {"method": "日" * 90}, {"日" * 90: 1}])
def test_long_reason(server: Running, errors: pytest.LogCaptureFixture, fields: dict) -> None:
    with server.socket() as socket:
        socket.say("start", **{"targets": ["de"], **fields})
        assert socket.hear()["fatal"] is True
        with pytest.raises(ConnectionClosed) as closed:
            socket.hear()
        assert closed.value.rcvd is not None and closed.value.rcvd.code in (1002, 1008)
    assert not errors.records


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/v1/translate", "GET", {"POST"}),
        ("/v1/ingest/x", "PUT", {"GET", "HEAD", "POST", "DELETE"}),
        ("/health", "DELETE", {"GET", "HEAD"}),
    ],
)
def test_allowed_methods(server: Running, path: str, method: str, allowed: set[str]) -> None:
    answer = server.ask(path, method=method)
    assert (answer.status, set(answer.headers["allow"].split(", "))) == (405, allowed)


def test_disconnect_mid_body(server: Running, errors: pytest.LogCaptureFixture) -> None:
    fields = (b"host: 127.0.0.1", b"content-type: application/json", b"content-length: 99", b"", b"{")
    head = b"\r\n".join((b"POST /v1/translate HTTP/1.1", *fields))
    for _ in range(3):
        with sockets.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(head)
    time.sleep(0.1)
    assert server.ask("/health").status == 200
    assert not errors.records


def test_refused_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(drain_seconds=20) as server:
        token = server.ask("/v1/sessions", {"targets": ["de"]}).json["token"]
        path = f"/v1/ingest/{token}"
        assert server.ask(f"{path}?seq=0", b"we saw").status == 200
        server.hub.admission.draining = True
        refused = server.ask(f"{path}?seq=1", b"her duck")
        assert (refused.status, refused.json["error"]["code"]) == (503, "draining")
        assert refused.headers["retry-after"] == "5"
        server.hub.admission.draining = False
        assert server.ask(path).text == "0\n"
        assert server.ask(f"{path}?seq=1", b"her duck").status == 200
        with monkeypatch.context() as full:
            full.setattr("redraft.serve.sessions.live.MOST_CHARACTERS", 0)
            full.setattr(deadlines, "ROOM", 0.1)
            assert server.ask(f"{path}?seq=2", b"more").status == 429
        assert server.ask(path, method="DELETE").status == 204
        late = server.ask(f"{path}?seq=2", b"late")
        assert (late.status, late.json["error"]["code"]) == (409, "stale")
        assert server.ask(path).text == "1\n"


def test_post_rate() -> None:
    with running(updates_per_second=10) as server:
        path = f"/v1/ingest/{server.ask('/v1/sessions', {'targets': ['de']}).json['token']}"
        begun = time.monotonic()
        for seq in range(14):
            assert server.ask(f"{path}?seq={seq}&final=false", b"we saw").status == 200
        assert time.monotonic() - begun > 0.25


def test_slow_rate() -> None:
    rate = Rate(0.5, 0.5)
    assert rate.take(0.0) == 0 < rate.take(0.0)
    assert rate.take(2.0) == 0
    with running(updates_per_second=0.9) as server, server.socket() as socket:
        socket.start()
        say(socket, "we saw", final=False)
        say(socket, "we saw her", first=1)
        assert finals(socket.until("final")) == [("1", "de", expected("we saw her"))]


def test_unwritable_transcript(tmp_path: Path, errors: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    with running(transcripts=folder) as server, server.socket() as socket:
        socket.start()
        shutil.rmtree(folder)
        say(socket, "we saw")
        heard = socket.until("error")
        say(socket, "her duck", utterance="2")
        socket.say("end")
        heard += socket.until("done")
        assert finals(heard) == [("1", "de", expected("we saw")), ("2", "de", expected("her duck"))]
        assert [each["code"] for each in heard if each["type"] == "error"] == ["transcript"]
    logged = [record.getMessage() for record in errors.records]
    assert logged == ["a transcript could not be written", "captions are missing in the folder of transcripts"]


def test_transcript_is_completed_at_end(tmp_path: Path) -> None:
    folder, away = tmp_path / "transcripts", tmp_path / "away"
    folder.mkdir()
    with running(transcripts=folder) as server, server.socket() as socket:
        name = socket.start()["session"]
        folder.rename(away)
        say(socket, "we saw")
        socket.until("final")
        away.rename(folder)
        say(socket, "her duck", utterance="2")
        socket.say("end")
        socket.until("done")
        eventually(
            lambda: [each.read_text().count("\n") for each in folder.glob(f"*-{name}.jsonl")] == [4]
        )  # with what was spoken


def test_live_readers_count_as_viewers() -> None:
    with running(viewers=2) as server, server.socket() as socket:
        name = socket.start()["session"]
        path = f"/v1/sessions/{name}/transcript?live=true"
        with server.socket(f"/v1/watch/{name}"), urllib.request.urlopen(server.url + path, timeout=SECONDS):
            assert server.ask(path).status == 429
            assert server.ask(path, method="HEAD").status == 200  # and it ends
            with server.socket(f"/v1/watch/{name}") as third:
                assert third.hear()["code"] == "limit"
            assert 'redraft_refusals_total{code="limit"} 2.0' in server.ask("/metrics").text
        session = server.hub.sessions[name]
        eventually(lambda: (session.broadcast.readers, len(session.broadcast.viewers)) == (0, 0))


def test_language_twice(server: Running) -> None:
    with server.socket() as socket:
        path = f"/v1/sessions/{socket.start()['session']}/transcript"
        say(socket, "we saw")
        socket.until("final")
        assert server.ask(path + "?" + "target=de&" * 800).text == expected("we saw") + "\n"
        refused = server.ask(path + "?" + "target=de&" * 1500)
        assert (refused.status, refused.json["error"]["code"]) == (413, "size")


def test_option_before_capacity() -> None:
    with running(targets=2, languages=2) as server, server.socket() as socket, server.socket() as other:
        socket.start("de", "ja")
        assert other.start("de", "ja", "zh")["code"] == "option"


@pytest.mark.parametrize("begun", [False, True])
def test_cancelled_start(monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    with running() as server:
        hub, reached, go_on = server.hub, threading.Event(), threading.Event()

        def wait() -> None:
            reached.set()
            go_on.wait(SECONDS)

        def translations(wanted: Wanted) -> list[Translation]:
            wait()
            return Service.translations(service, wanted)

        service = hub.service
        if begun:  # the engine is making the lanes when whoever asked leaves
            monkeypatch.setattr(service, "translations", translations)
        else:
            server.engine.post(wait)
        opening = asyncio.run_coroutine_threadsafe(hub.open(Begin(targets=("de", "ja")), "", "here"), server.loop)
        assert reached.wait(SECONDS)
        eventually(lambda: hub.sessions)
        opening.cancel()
        eventually(lambda: not hub.sessions)
        go_on.set()
        # Two rounds: what it does about it is asked for in the first one.
        assert [server.engine.call(lambda: server.engine.scheduler.lanes).result(SECONDS) for _ in range(2)][-1] == 0
        assert hub.engines.alive


def test_waiting_for_refused_session(server: Running) -> None:
    hub = server.hub

    async def wait() -> None:
        begun, _ = await hub.open(Begin(targets=("de",)), "", "here")
        begun.opened.clear()
        waiting = asyncio.create_task(hub.open(Begin(targets=("de",)), "", "here", begun.token, connection=1))
        await asyncio.sleep(0)
        hub.forget(begun)
        # A later attempt is quicker with a new one of the same name.
        later, _ = await hub.open(Begin(targets=("de",)), "", "here", begun.token, connection=2)
        begun.opened.set()
        with pytest.raises(Refused, match="another connection"):
            await waiting
        assert hub.owned(begun.token) is later
        hub.forget(later)

    asyncio.run_coroutine_threadsafe(wait(), server.loop).result(SECONDS)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_resumed_twice_after_move(order: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two connections ask for a session that another replica had meanwhile: only one puts one in its place."""

    async def wait(hub: Hub) -> None:
        begun, _ = await hub.open(Begin(targets=("de",)), "", "here")
        answered = asyncio.Event()

        async def moved(session: LiveSession) -> bool:  # as Redis says, after a while
            return await answered.wait() and session is begun

        fanout = MagicMock(moved=moved)
        fanout.reserved.return_value = nullcontext()
        monkeypatch.setattr(hub, "fanout", fanout)
        asking = [
            asyncio.create_task(hub.open(Begin(targets=("de",)), "", "here", begun.token, connection=each))
            for each in order
        ]
        await asyncio.sleep(0)
        answered.set()
        first, second = await asyncio.gather(*asking, return_exceptions=True)
        assert first == (hub.owned(begun.token), False)
        if order == (1, 2):
            assert second == (first[0], True) and first[0].connection == 2
        else:
            assert isinstance(second, Refused) and second.code == "replaced"
        hub.forget(hub.owned(begun.token))
        monkeypatch.undo()

    with running() as server:
        asyncio.run_coroutine_threadsafe(wait(server.hub), server.loop).result(SECONDS)
        assert server.engine.call(lambda: server.engine.scheduler.lanes).result(SECONDS) == 0


def test_begun_in_two_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two connections begin a session of the same token, while Redis is asked for the room of the first."""

    async def wait(hub: Hub) -> None:
        answered = asyncio.Event()

        @asynccontextmanager
        async def taken(begin: Begin, *_: str) -> AsyncIterator[None]:
            if begin.room:
                await answered.wait()
            yield

        monkeypatch.setattr(hub, "fanout", MagicMock(reserved=taken))
        begins = [Begin(targets=("de",), room=room) for room in ("hall-1", None)]
        asking = [asyncio.create_task(hub.open(each, "", "here", "x" * 32, connection=1)) for each in begins]
        begun, _ = await asking[1]
        answered.set()
        with pytest.raises(Refused, match="try again"):
            await asking[0]
        assert hub.owned("x" * 32) is begun
        hub.forget(begun)
        monkeypatch.undo()

    with running() as server:
        asyncio.run_coroutine_threadsafe(wait(server.hub), server.loop).result(SECONDS)
        assert server.engine.call(lambda: server.engine.scheduler.lanes).result(SECONDS) == 0


def test_failing_sweep(errors: pytest.LogCaptureFixture) -> None:
    with running(keep_seconds=0) as server, server.socket() as socket:
        session = server.hub.owned(socket.start()["token"])
        server.call(partial(setattr, session, "_counts", {}))
        with server.socket() as other:
            token = other.start()["token"]
        eventually(lambda: public_name(token) not in server.hub.sessions)
    assert "a session could not be looked after" in {record.getMessage() for record in errors.records}


def test_key_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first = new_key(path, "stage")
    path.write_text(path.read_text().rstrip("\n"))
    second = new_key(path, "stage-2")
    keys = ApiKeys(path)
    assert [keys.owner(key) for key in (first, second, "other")] == ["stage", "stage-2", None]
    before = path.read_text()
    with pytest.raises(OptionError, match="key named 'stage' already"):
        new_key(path, "stage")
    assert path.read_text() == before
    path.write_text(before.replace("stage-2", "stage"))
    with pytest.raises(OptionError, match="line 2: must be .* with a name that no other line has"):
        ApiKeys(path)
    with pytest.raises(OptionError, match="cannot be written"):
        new_key(tmp_path / "nowhere" / "keys", "stage")
