"""The client on a real server, over a connection that drops now and then."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from socket import SO_RCVBUF, SOL_SOCKET, create_server
from typing import Any

import pytest
import websockets.asyncio.client
from websockets.asyncio.server import ServerConnection, serve

from redraft import deadlines, protocol
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.style import Style
from redraft.client import Backoff, Client, ServerError
from redraft.client import client as client_module
from redraft.client.wire import address, parse, viewers_page
from redraft.errors import InputError, OptionError
from tests.client.lines import EXACT, QUICK, Line, ended, line, run, talk
from tests.serve.fakes import CachedModel
from tests.serve.servers import Running, running
from tests.serve.talking import expected, hidden_in


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(updates_per_second=10_000, busy=1000) as found:
        yield found


@asynccontextmanager
async def cabled(server: Running, backoff: Backoff = QUICK) -> AsyncIterator[tuple[Line, Client]]:
    """A client into one language, and the line over which it reaches the server."""
    async with (
        line(server.port) as cable,
        Client(f"http://127.0.0.1:{cable.port}", ["de"], method=EXACT, backoff=backoff) as client,
    ):
        yield cable, client


def test_updates_in_captions_out(server: Running) -> None:
    async def work() -> None:
        async with Client(server.url, ["de", "ja"], method=EXACT) as client:
            for update in talk(3):
                await client.send(update)
            await client.end()
            events = [event async for event in client]
        assert sorted(ended(events)) == sorted(
            (str(n), target, expected(f"{n} it was her duck", target)) for n in range(3) for target in ("de", "ja")
        )
        final = next(event for event in events if isinstance(event, Caption) and event.final)
        assert (final.seq, final.time, final.source, final.unstable) == (3, 3.0, "0 it was her duck", "")
        assert client.session and client.reconnected == 0

    run(work())


def test_what_the_server_can_do(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.engine.scheduler, "able", lambda: "this model can do little")

    async def work() -> None:
        async with Client(server.url, ["de"], method=EXACT) as client:
            assert client.able == ""
            await client.send(Update("1", 0, "it was", final=True))
            await client.end()
            assert len([event async for event in client]) == 1
            assert client.able == "this model can do little"

    run(work())


@pytest.mark.parametrize("seed", range(2))
def test_cut_connection(server: Running, seed: int) -> None:
    chance = random.Random(seed)

    async def work() -> None:
        async with line(server.port) as cable:
            async with Client(f"127.0.0.1:{cable.port}", ["de", "ja"], method=EXACT, backoff=QUICK) as client:

                async def speak() -> None:
                    for number, update in enumerate(talk(20)):
                        await client.send(update)
                        await asyncio.sleep(chance.random() * 0.01)
                        if number % 8 == 7:
                            cable.cut()
                    await client.end()

                speaking = asyncio.create_task(speak())
                events = [event async for event in client]
                await speaking
            assert cable.cuts > 5 and client.reconnected > 2
            assert sorted(ended(events)) == sorted(
                (str(n), target, expected(f"{n} it was her duck", target)) for n in range(20) for target in ("de", "ja")
            )
            rows = server.ask(f"/v1/sessions/{client.session}/transcript?language=de").text.splitlines()
            assert rows == [expected(f"{n} it was her duck") for n in range(20)]
            assert not [event for event in events if isinstance(event, Failure)]

    run(work())


def test_forgotten_session(server: Running) -> None:
    async def work() -> None:
        seen: list[Event] = []
        updates = talk(6)
        wanted = [expected(f"{n} it was her duck") for n in range(6)]
        async with cabled(server) as (cable, client):
            for update in updates[:12]:
                await client.send(update)
            async for event in client:
                seen.append(event)
                if len(ended(seen)) == 3:
                    break
            with running(updates_per_second=10_000) as other:
                cable.to = other.port
                cable.cut()
                for update in updates[12:]:
                    await client.send(update)
                await client.end()
                seen += [event async for event in client]
                assert client.reconnected == 1
                assert [text for _, _, text in ended(seen)] == wanted
                path = f"/v1/sessions/{client.session}/transcript"
                assert other.ask(path).text.splitlines() == wanted
                subtitles = other.ask(path + "?format=srt").text.splitlines()
                said = [line for line in subtitles if line and " --> " not in line and not line.isdigit()]
                assert " ".join(said) == " ".join(wanted)

    run(work())


def test_failures() -> None:
    async def work(url: str) -> None:
        async with Client(url, ["de"], method=EXACT) as client:
            await client.send(Update("1", 0, "poison" * 60, True))
            await client.send(Update("2", 0, "we saw", True))
            await client.send(Update("2", 1, "late", True))
            await client.end()
            events = [event async for event in client]
        failures = [event for event in events if isinstance(event, Failure)]
        assert [failure.utterance for failure in failures] in (["1", "2"], ["2", "1"], ["1"])
        assert [name for name, _, _ in ended(events)] == ["2"]

    broken = CachedModel(1, broken=lambda scores: any(len(score.prefix) > 300 for score in scores))
    with running(broken) as server:
        run(work(server.url))


def test_refused_start(server: Running) -> None:
    async def work(url: str, *to: str, method: str = EXACT) -> None:
        async with Client(url, to or ("de",), method=method):
            raise AssertionError

    with pytest.raises(ServerError, match="xx-nonsense") as refused:
        run(work(server.url, "xx-nonsense"))
    assert refused.value.code == "option"
    with pytest.raises(ServerError, match="method"):
        run(work(server.url, method="redraft"))
    with pytest.raises(ServerError, match="cannot be reached: Connection refused$"):
        run(work("http://127.0.0.1:1"))
    with pytest.raises(ServerError, match="is not a Redraft server"):
        run(work(f"{server.url}/docs"))
    with running(sessions=1) as full, full.socket() as socket:
        socket.start()
        with pytest.raises(ServerError, match="sessions") as refused:
            run(work(full.url))
        assert refused.value.code == "capacity"


def test_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "STARTED", 0.1)

    async def silent(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async def work() -> None:
        async with serve(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ServerError, match="cannot be reached"):
                async with Client(f"http://127.0.0.1:{port}", ["de"]):
                    raise AssertionError

    run(work())


def test_close_after_cut(server: Running) -> None:
    """Closing ends a client, however shortly before that its connection was cut."""

    async def work(turns: int) -> None:
        async with line(server.port) as cable:
            client = Client(f"http://127.0.0.1:{cable.port}", ["de"], method=EXACT, backoff=QUICK)
            await client.__aenter__()
            cable.cut()
            for _ in range(turns):
                await asyncio.sleep(0)
            closed = asyncio.create_task(client.close())
            assert await asyncio.wait([closed], timeout=10) == ({closed}, set())

    for turns in range(12):
        run(work(turns))


@pytest.mark.parametrize("heartbeat", [0.1, 60])
def test_server_that_stops_reading(monkeypatch: pytest.MonkeyPatch, heartbeat: float) -> None:
    """A connection on which nothing more can be sent is closed after a silence, and by closing the client."""
    monkeypatch.setattr(deadlines, "GOODBYE", 0.1)
    started: dict[str, Any] = {"session": "s" * 32, "token": "t" * 32, "server": "one", "message_bytes": 1 << 20}
    connections, over = list[ServerConnection](), asyncio.Event()

    async def deaf(socket: ServerConnection) -> None:
        connections.append(socket)
        await socket.send(protocol.Started(targets=("de",), heartbeat=heartbeat, **started).wire())
        socket.transport.pause_reading()
        await over.wait()
        socket.transport.abort()

    async def work() -> None:
        async with AsyncExitStack() as stack:
            listening = stack.enter_context(create_server(("127.0.0.1", 0)))
            listening.setsockopt(SOL_SOCKET, SO_RCVBUF, 4096)
            await stack.enter_async_context(serve(deaf, sock=listening))
            stack.callback(over.set)
            client = Client(f"http://127.0.0.1:{listening.getsockname()[1]}", ["de"], backoff=QUICK)
            await client.__aenter__()
            for number in range(60):  # more than the system's buffers hold
                await client.send(Update(str(number), 0, "日" * 20_000, final=True))
            async with asyncio.timeout(10):
                while heartbeat < 1 and len(connections) < 2:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            closed = asyncio.create_task(client.close())
            assert await asyncio.wait([closed], timeout=10) == ({closed}, set())

    run(work())


def test_server_stays_away() -> None:
    async def work(url: str, server: Running) -> None:
        async with Client(url, ["de"], backoff=Backoff(0.01, 0.02, 0.2)) as client:
            server.call(server.server.stop)
            with pytest.raises(ServerError, match="could not be restored"):
                async for _ in client:
                    pass
            with pytest.raises(ServerError, match="the session is over"):
                await client.send(Update("1", 0, "we saw"))

    with running() as server:
        run(work(server.url, server))


def test_invalid_options(server: Running) -> None:
    for server_address in ("", "ftp://a", "http://", "http://a:b", "http://[::1"):
        with pytest.raises(OptionError, match="server must be an address"):
            Client(server_address, ["de"])
    with pytest.raises(OptionError, match="template"):
        Client("http://a", ["de"], style=Style(template="tower"))
    with pytest.raises(OptionError, match="targets"):
        Client("http://a", [])

    async def work() -> None:
        async with Client(server.url, ["de"]) as client:
            with pytest.raises(InputError, match="text"):
                await client.send(Update("1", 0, "a" * 20_001))

    run(work())


def test_iteration_ends(server: Running) -> None:
    async def left() -> None:
        async with Client(server.url, ["de"]) as client:
            reading = asyncio.create_task(_all(client))
            await asyncio.sleep(0.05)
            await client.close()
            assert await reading == []
            with pytest.raises(ServerError, match="the session is over"):
                await client.send(Update("1", 0, "we saw"))

    async def ended() -> None:
        async with Client(server.url, ["de"], method=EXACT) as client:
            await client.send(Update("1", 0, "we saw", final=True))
            await client.end()
            assert len(await _all(client)) == 1
            assert await _all(client) == []

    async def failed() -> None:
        with running() as other:
            async with Client(other.url, ["de"], backoff=Backoff(0.01, 0.02, 0.1)) as client:
                other.call(other.server.stop)
                for _ in range(2):
                    with pytest.raises(ServerError, match="could not be restored"):
                        await _all(client)

    for work in (left, ended, failed):
        run(work())


def test_lost_with_unread_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.client.client._MOST_EVENTS", 1)

    async def work() -> None:
        with running() as other:
            async with Client(other.url, ["de"], method=EXACT, backoff=Backoff(0.01, 0.02, 0.1)) as client:
                await client.send(Update("1", 0, "we saw", final=True))
                while not client._events.full():
                    await asyncio.sleep(0.01)
                other.call(other.server.stop)
                with pytest.raises(ServerError, match="the session is over"):
                    await _send_on(client)

    run(work())


async def _send_on(client: Client) -> None:
    while True:
        await asyncio.sleep(0.01)
        await client.send(Update("2", 0, "we saw"))


async def _all(client: Client) -> list[Event]:
    return [event async for event in client]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("http://a:1", "ws://a:1/v1/live"),
        ("https://a/sub/", "wss://a/sub/v1/live"),
        ("a:1", "ws://a:1/v1/live"),
        ("ws://[::1]:2", "ws://[::1]:2/v1/live"),
    ],
)
def test_addresses(given: str, found: str) -> None:
    assert address(given) == found


def test_waits_grow_and_end() -> None:
    waits = list(Backoff(1, 8, 60).waits())
    assert 0.5 <= waits[0] <= 1 and max(waits) <= 8 and sum(waits[:-1]) < 60 <= sum(waits)
    assert list(Backoff(1, 8, 0).waits()) == []


@pytest.mark.parametrize(("most", "lost"), [(4096, []), (1024, ["long"])])
def test_restore_at_smaller_server(most: int, lost: list[str]) -> None:
    def texts(server: Running, client: Client) -> list[str]:
        return server.ask(f"/v1/sessions/{client.session}/transcript").text.splitlines()

    async def work(server: Running, other: Running) -> None:
        async with cabled(server) as (cable, client):
            names = [*map(str, range(30)), "long"]
            for name in names:
                await client.send(Update(name, 0, "it was her duck", True))
            seen = 0
            async for event in client:
                seen += len(ended([event]))
                if seen == len(names):
                    break
            client.control.correct("long", "de", "lang " * 200)
            hidden = names[1:]
            for name in hidden:
                client.control.hide(name)
            await until(lambda: len(texts(server, client)) == 1)
            cable.to = other.port
            cable.cut()
            await until(lambda: bool(other.hub.sessions) and len(texts(other, client)) == 1)
            session = other.hub.sessions[client.session]
            await until(lambda: len(hidden_in(session)) == len(hidden))
            await until(lambda: [name for name in names if (name, "de") not in session.transcript] == lost)
            if lost:
                with pytest.raises(InputError, match="at most 1024 bytes"):
                    await client.send(Update("more", 0, "it was " * 200))
            await client.send(Update("last", 0, "it was her duck", True))
            await client.end()
            rest = [event async for event in client]
            assert [each.utterance for each in rest if isinstance(each, Failure)] == 2 * lost  # and its correction
            assert [name for name, _, _ in ended(rest)] == ["last"]
            assert client.reconnected == 1

    async def until(check: Callable[[], bool]) -> None:
        while not await asyncio.to_thread(check):
            await asyncio.sleep(0.01)

    with running(updates_per_second=10_000) as server, running(message_bytes=most) as other:
        run(work(server, other))


def test_backoff_without_progress() -> None:
    """A client backs off from a server that accepts connections and drops them."""
    started = {
        "type": "started",
        "session": "a" * 32,
        "token": "b" * 32,
        "targets": ["de"],
        "server": "x",
        "heartbeat": 5,
    }
    times: list[float] = []

    async def drop(socket: ServerConnection) -> None:
        times.append(asyncio.get_running_loop().time())
        await socket.recv()
        await socket.send(json.dumps(started | {"message_bytes": 1024, "resumed": len(times) > 1}))
        await socket.close(1009)

    async def work() -> None:
        async with serve(drop, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            async with Client(f"127.0.0.1:{port}", ["de"], backoff=Backoff(0.02, 10.0, 1.0)) as client:
                with pytest.raises(ServerError, match="could not be restored"):
                    await anext(aiter(client))

    run(work())
    assert 4 <= len(times) <= 10


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether no server can be reached, as the only item."""
    state, connect = [False], websockets.asyncio.client.connect

    def maybe(*arguments: Any, **options: Any) -> Any:
        if state[0]:
            raise ConnectionRefusedError("nobody is there")
        return connect(*arguments, **options)

    monkeypatch.setattr(client_module, "connect", maybe)
    return state


def test_news_of_server(server: Running, away: list[bool]) -> None:
    """One line when it stays away, and one when it is back; none if it can be reached again at once."""

    async def work() -> None:
        news: list[str] = []
        async with cabled(server) as (cable, client):
            client.news = news.append
            cable.cut()
            await client.send(Update("1", 0, "we saw", True))
            async for event in client:
                if isinstance(event, Caption) and event.final:
                    break
            assert not news
            away[0] = True
            cable.cut()
            while not news:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            away[0] = False
            await client.end()
            assert not [event async for event in client]
        lost, back = news
        assert " was lost: " in lost and "nobody is there" in lost and back.endswith(" is back")

    run(work())


def test_news_of_server_that_hangs(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed after two heartbeats; while a server that is idle sends them, nothing is."""
    for name, seconds in (("HEARTBEAT", 0.2), ("GOODBYE", 0.05)):
        monkeypatch.setattr(deadlines, name, seconds)

    async def work() -> None:
        news: list[str] = []
        async with cabled(server) as (cable, client):
            client.news = news.append
            await asyncio.sleep(5 * deadlines.HEARTBEAT)
            assert not news and not client.reconnected
            cable.hangs = True
            while not news:
                await asyncio.sleep(0.01)
            cable.hangs = False
            await client.end()
            assert not [event async for event in client]
        lost, back = news
        assert "sent nothing for 0.4 seconds" in lost and back.endswith(" is back")

    run(work())


def test_end_while_server_hangs(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LAST", 0.1), ("GOODBYE", 0.05)):
        monkeypatch.setattr(deadlines, name, seconds)

    async def work() -> None:
        async with cabled(server) as (cable, client):
            cable.hangs = True
            await client.send(Update("1", 0, "we saw", True))
            client.hurry()
            with pytest.raises(ServerError, match="did not answer a ping"):
                await asyncio.wait_for(anext(aiter(client)), 10)

    run(work())


def test_end_while_server_is_away(server: Running, away: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "LAST", 0.3)

    async def work() -> None:
        slow = Backoff(5, 60, 3600)
        async with cabled(server, slow) as (cable, client):
            away[0] = True
            cable.cut()
            await client.send(Update("1", 0, "we saw", True))
            await asyncio.sleep(0.2)
            client.hurry()
            began = time.monotonic()
            with pytest.raises(ServerError, match="could not be restored"):
                _ = [event async for event in client]
            assert time.monotonic() - began < 4

    run(work())


def test_later_server() -> None:
    """Fields that a later server sends are ignored."""
    final = {"type": "final", "utterance": "1", "seq": 0, "language": "de", "text": "wir"}
    for message in ({"type": "pause", "paused": True}, {"type": "done"}, final):
        assert parse(json.dumps({**message, "later": 1})) == parse(json.dumps(message))


def test_link_without_password() -> None:
    link = viewers_page(address("https://me:secret@captions.example:8000/live"), "abc")
    assert link == "https://captions.example:8000/live/watch?session=abc"
