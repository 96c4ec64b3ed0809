"""Redis that crashes, restarts or loses data: viewers on other replicas miss nothing and see nothing twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedOK

from fanout.conftest import RedisServer, replica
from fanout.sessions import begin, fanout_of, watch
from redraft.deadlines import Backoff
from redraft.protocol import Begin, Done
from redraft.serve.sessions.broadcast import Broadcast
from redraft.serve.settings import ServeSettings
from redraft_fanout import feed
from redraft_fanout.fanout import Listener
from redraft_fanout.store import Entry, Position, Store
from tests.serve.servers import SECONDS, Running, Socket
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often."""
    monkeypatch.setattr(feed, "BEAT", 0.5)


def test_redis_killed(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket)
        say(socket, "we saw", utterance="before")
        socket.until("final")
        with watch(viewers, name) as there, watch(speakers, name) as here:
            assert finals(there.until("final")) == [("before", "de", expected("we saw"))]
            redis.kill()
            for utterance in ("while", "still"):  # the session and its own replica's viewers go on
                say(socket, "her duck", utterance=utterance)
                assert finals(socket.until("final")) == [(utterance, "de", expected("her duck"))]
            socket.say("hide", utterance="before")
            assert [each[0] for each in finals(here.until("hidden"))] == ["before", "while", "still"]
            redis.start()
            assert there.until("hidden")[-1]["utterance"] == "before"
            heard = there.until("final") + there.until("final")
            assert finals(heard) == [(each, "de", expected("her duck")) for each in ("while", "still")]
            say(socket, "we saw", utterance="after")
            socket.say("end")
            assert finals(there.until("done")) == [("after", "de", expected("we saw"))]


def test_viewer_during_outage(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket)
        with watch(viewers, name):  # known, so that others may still come
            redis.kill()
            with viewers.socket(f"/v1/watch/{'0' * 32}") as late, viewers.socket(f"/v1/watch/{name}"):
                assert late.hear()["code"] == "capacity"
            with speakers.socket("/v1/live") as other:  # even in a room
                assert other.start(room="hall-1", method="ar")["type"] == "started"


def test_missed_messages(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket)
        with watch(viewers, name) as there:
            for number in range(5):
                redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
                say(socket, "we saw", utterance=str(number))
                assert finals(socket.until("final"))
            heard = finals([message for _ in range(5) for message in there.until("final")])
            assert heard == [(str(number), "de", expected("we saw")) for number in range(5)]


def test_deleted_log(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    with speakers.socket() as socket:
        name = begin(socket)
        say(socket, "we saw")
        socket.until("final")
        redis.ask("FLUSHALL")
        with watch(viewers, name) as there:
            assert finals(there.until("final")) == [("1", "de", expected("we saw"))]


def test_log_deleted_before_a_caption(
    redis: RedisServer, speakers: Running, viewers: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log whose start is missing is not continued."""
    monkeypatch.setattr(feed, "BEAT", 3 * SECONDS)
    with speakers.socket() as socket:
        name = begin(socket)
        for utterance in ("1", "2", "3"):
            say(socket, "we saw", utterance=utterance)
            socket.until("final")
            eventually(lambda: int(redis.ask("XLEN", f"redraft:session:{name}")[1:]) > 1)
            redis.ask("FLUSHALL")
        say(socket, "we saw", utterance="4")
        socket.until("final")
        with watch(viewers, name) as there:
            heard = [message for _ in range(4) for message in there.until("final")]
        assert finals(heard) == [(each, "de", expected("we saw")) for each in ("1", "2", "3", "4")]


def test_owner_back_while_redis_is_asked(redis: RedisServer, speakers: Running, viewers: Running) -> None:
    """That another replica has the session no longer counts once the owner has come back to this one."""
    store, asked, back = fanout_of(speakers)._store, asyncio.Event(), asyncio.Event()
    begins = store.begin

    async def begin_late(name: str, about: str, connection: int) -> Any:
        if asked.is_set():
            return await begins(name, about, connection)
        asked.set()
        await back.wait()
        return None

    with ExitStack() as stack:
        with speakers.socket() as socket:
            started = socket.start(method="ar")
            say(socket, "we saw")
            socket.until("final")
            viewer = stack.enter_context(watch(viewers, started["session"]))
            assert finals(viewer.until("final")) == [("1", "de", expected("we saw"))]
        stack.enter_context(mock.patch.object(store, "begin", begin_late))
        redis.ask("FLUSHALL")
        eventually(asked.is_set)
        socket = stack.enter_context(speakers.socket())
        assert socket.start(method="ar", token=started["token"])["resumed"]
        speakers.call(back.set)
        say(socket, "her duck", utterance="2")
        assert [each[0] for each in finals(socket.until("final") + socket.until("final"))] == ["1", "2"]
        assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]


def test_lost_session_is_being_written(redis: RedisServer) -> None:
    """A replica that has lost a session does not begin its log again while the other one writes it, however long."""

    async def work() -> None:
        ours, theirs = (Store(ServeSettings(model="demo", fanout=redis.url), name) for name in ("ours", "theirs"))
        assert await ours.begin("1", "{}", 1)
        first = await theirs.begin("1", "{}", 2)
        assert first
        await theirs.append("1", [Entry(first.next, "{}")])
        assert await ours.begin("1", "{}", 1) is None
        await theirs.append("1", [Entry(first.next.next, "{}")])
        for store in (ours, theirs):
            await store.close()

    asyncio.run(work())


def test_delays_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many outages there were, a log is soon written again after the next one."""
    delays = list[int]()

    class Delays:
        def waits(self) -> Iterator[float]:
            for number in count():
                delays.append(number)
                yield 0.0

    async def append(name: str, entries: Sequence[Entry], *, publish: bool = True) -> None:
        if publish:
            raise ConnectionError

    async def work() -> None:
        broadcast, over = Broadcast(["de"], "en"), asyncio.Event()

        async def alive(_session: Any, _first: bool) -> None:
            broadcast.send(Done().frame, "stats")
            if len(delays) == 5:
                over.set()

        begin = Begin(targets=("de",))
        about = {"begin": begin, "broadcast": broadcast, "transcript": broadcast.transcript}
        session: Any = SimpleNamespace(connection=0, name="1", **about)
        store = mock.AsyncMock(Store, append=append, begin=lambda *_: asyncio.sleep(0, Position(1, 0)))
        publisher = feed.Publisher(session, store, alive, lambda _: None)
        await over.wait()
        publisher.task.cancel()

    monkeypatch.setattr(feed, "RETRIES", Delays())
    asyncio.run(asyncio.wait_for(work(), SECONDS))
    assert set(delays) == {0}


def test_many_edits(redis: RedisServer, speakers: Running, viewers: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_EDITS", 20)
    with speakers.socket() as socket:
        name = begin(socket)
        say(socket, "we saw")
        socket.until("final")
        with watch(viewers, name) as there:
            for number in range(40):
                socket.say("correct", utterance="1", language="de", text=f"Wir {number}")
            while finals(there.until("final"))[-1][2] != "Wir 39":
                pass
            eventually(lambda: int(redis.ask("XLEN", f"redraft:session:{name}")[1:]) < 30)
            with watch(viewers, name) as late:
                assert finals([late.hear()]) == [("1", "de", "Wir 39")]


def test_many_viewers_redis_killed(redis: RedisServer, speakers: Running) -> None:
    """A hundred viewers, of whom half come while the talk goes on; Redis dies twice."""
    utterances = 30
    only = {"viewers_only": True}
    with replica(redis, **only) as one, replica(redis, **only) as two, speakers.socket() as socket:
        name = begin(socket, "de", "ja")
        for server in (one, two):
            with watch(server, name):
                pass

        async def view(number: int) -> Counter[tuple[str, str]]:
            await asyncio.sleep(0.02 * number)
            url = f"ws://127.0.0.1:{(one, two)[number % 2].port}/v1/watch/{name}"
            async with connect(url, proxy=None, open_timeout=None) as viewer:
                heard: Counter[tuple[str, str]] = Counter()
                async for text in viewer:
                    message: dict[str, Any] = json.loads(text)
                    if message["type"] == "final":
                        heard[message["utterance"], message["language"]] += 1
                return heard

        def speak() -> None:
            for number in range(utterances):
                if number in (8, 20):
                    redis.kill()
                if number in (12, 22):
                    redis.start()
                say(socket, "we saw her duck", utterance=str(number))
                socket.until("final")
                socket.until("final")
            socket.say("end")
            socket.until("done")

        async def all_of_it() -> list[Counter[tuple[str, str]]]:
            async with asyncio.timeout(9 * SECONDS):  # a quarter of a core has taken a minute
                viewers = [asyncio.create_task(view(number)) for number in range(100)]
                await asyncio.to_thread(speak)
                return await asyncio.gather(*viewers)

        counts = asyncio.run(all_of_it())
    once = Counter({(str(number), target): 1 for number in range(utterances) for target in ("de", "ja")})
    assert all(count == once for count in counts)


def test_replica_stopped(redis: RedisServer, viewers: Running) -> None:
    """As in a rolling update: the speaker goes on with another replica."""
    with ExitStack() as stack:
        with replica(redis) as first, first.socket() as socket:
            started = socket.start(method="ar")
            name, token = started["session"], started["token"]
            say(socket, "we saw")
            kept = socket.until("final")[-1]
            viewer = stack.enter_context(watch(viewers, name))
            with watch(first, name) as here:
                first.call(first.server.stop)
                assert here.until("error")[-1]["code"] == "draining"
        second = stack.enter_context(replica(redis))
        with second.socket() as socket:
            assert socket.start(method="ar", token=token)["session"] == name
            socket.say("restore", finals=[kept])
            say(socket, "her duck", utterance="2")
            socket.say("end")
            heard = viewer.until("done")
        assert finals(heard) == [("1", "de", expected("we saw")), ("2", "de", expected("her duck"))]
        assert not [each for each in heard if each["type"] == "error"]


def test_stop_whose_cancellation_is_lost(redis: RedisServer) -> None:
    """As when it comes together with a message from Redis."""

    async def deaf(self: Any) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(SECONDS * 10)
        await asyncio.sleep(SECONDS * 10)

    with mock.patch.object(Listener, "run", deaf), replica(redis):
        pass  # `replica` asserts that it ends


def test_abandoned_session(redis: RedisServer, viewers: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft_fanout.fanout._LOOK", 0.5)
    with ExitStack() as stack:
        with replica(redis) as speakers, speakers.socket() as socket:
            name = begin(socket)
            viewer = stack.enter_context(watch(viewers, name))
            speakers.call(speakers.server.stop)
            socket.until("error")
        assert redis.ask("DEL", f"redraft:session:{name}") == b":1\r\n"  # as it expires after a while
        with pytest.raises(ConnectionClosedOK) as closed:
            viewer.until("nothing else")
        assert closed.value.rcvd and (closed.value.rcvd.code, closed.value.rcvd.reason) == (1000, "the session is over")


def moved(
    stack: ExitStack,
    socket: Socket,
    started: dict[str, Any],
    kept: dict[str, Any],
    to: Iterable[Running],
    among: Sequence[Running],
) -> Socket:
    """Take a talk to one replica after the other, which do not know of it, and say an utterance on each."""
    for new in to:
        socket.connection.close()
        eventually(lambda: not any(each.in_use for place in among for each in place.hub.sessions.values()))
        socket = stack.enter_context(new.socket())
        started = socket.start(method="ar", token=started["token"], server=started["server"])
        assert started["resumed"] is False
        socket.say("restore", finals=[kept])
        say(socket, "her duck", utterance="2")
        socket.until("final")
    return socket


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("moves", [1, 2])
def test_cut_off_replica(
    redis: RedisServer, viewers: Running, monkeypatch: pytest.MonkeyPatch, moves: int, late: int
) -> None:
    """The speaker moves while Redis is away; whichever replica comes back first, the one with the speaker keeps it."""
    monkeypatch.setattr(feed, "RETRIES", Backoff(0.1, 0.2, float("inf")))
    with replica(redis) as first, replica(redis) as second, ExitStack() as stack:
        with first.socket() as socket:
            started = socket.start(method="ar")
            say(socket, "we saw")
            kept = socket.until("final")[-1]
            viewer = stack.enter_context(watch(viewers, started["session"]))
            viewer.until("final")
            redis.kill()
        socket = moved(stack, socket, started, kept, [second, first][:moves], among=(first, second))
        [first, second][late].call(lambda: time.sleep(1))
        redis.start()
        assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]
        say(socket, "we saw", utterance="3")
        socket.say("end")
        assert ("3", "de", expected("we saw")) in finals(viewer.until("done"))
        assert "error" not in [each["type"] for each in socket.until("done")]
        eventually(lambda: not [first, second][moves - 1].hub.sessions)


def test_ended_before_redis_is_back(redis: RedisServer, viewers: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica where a talk has ended has it, though one where the speaker was before has written twice."""
    monkeypatch.setattr(feed, "RETRIES", Backoff(0.1, 0.2, float("inf")))
    with replica(redis) as first, replica(redis) as second, ExitStack() as stack:
        socket = stack.enter_context(first.socket())
        started = socket.start(method="ar")
        say(socket, "we saw")
        kept = socket.until("final")[-1]
        viewer = stack.enter_context(watch(viewers, started["session"]))
        viewer.until("final")
        redis.kill()
        socket = moved(stack, socket, started, kept, (second, first), among=(first, second))
        say(socket, "we saw", utterance="3")
        socket.say("end")
        socket.until("done")
        first.call(lambda: time.sleep(2))
        redis.start()
        assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]
        redis.ask("CLIENT", "KILL", "TYPE", "normal")  # so that the second one begins the log again
        assert ("3", "de", expected("we saw")) in finals(viewer.until("done"))
