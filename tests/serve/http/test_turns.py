"""Requests come in turn: however many arrive at once, other work of the event loop gets in between."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPMessage, HTTPResponse
from typing import Any
from unittest import mock
from urllib.parse import quote

import pytest
from starlette.routing import Router

from redraft.serve.http import security
from redraft.serve.http.security import GAP, LONGEST, SHARE, Turns
from redraft.serve.run import Listening
from tests.serve.servers import SECONDS, Running, running
from tests.waiting import eventually

LINK = quote(f"https://example.org/watch?session={1:0440}", safe="")
HANDSHAKE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {'A' * 22}==",
)


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "\r\n"]).encode()


def post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class Held:
    """The event loop stands still until the block ends."""

    def __init__(self, server: Running) -> None:
        self._server, self._stands, self._go = server, threading.Event(), threading.Event()

    def _stand(self) -> None:
        self._stands.set()
        assert self._go.wait(SECONDS)

    def __enter__(self) -> None:
        self._server.call(self._stand)
        assert self._stands.wait(SECONDS)

    def __exit__(self, *_: object) -> None:
        self._go.set()


def answer(connection: socket.socket) -> tuple[int, HTTPMessage, bytes]:
    """Status, headers and body of the response."""
    found = HTTPResponse(connection)
    found.begin()
    return found.status, found.headers, found.read()


def at_once(server: Running, requests: list[bytes], stack: ExitStack) -> list[socket.socket]:
    """Connections whose requests all wait when the loop looks."""
    opened = []
    for _ in requests:
        opened.append(stack.enter_context(socket.create_connection(("127.0.0.1", server.port), SECONDS)))
    server.ask("/health")  # all are accepted
    with Held(server):
        for connection, request in zip(opened, requests, strict=True):
            connection.sendall(request)
        time.sleep(0.05)
    return opened


KINDS = {
    "qr": (get(f"/v1/qr?link={LINK}"), {200, 429}),  # refused until the first code is made
    "nothing": (get("/nothing"), {404}),
    "file": (get("/js/pages/watch.js"), {200}),
    "health": (get("/health"), {200}),
    "upload": (post("/v1/sentences", b"x" * 40_000), {400}),
    "ingest": (post("/v1/ingest/" + "a" * 32, b"Good morning."), {404}),
    "method": (get("/v1/translate"), {405}),
    "viewer": (get("/v1/rooms/hall/watch", *HANDSHAKE), {101}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_request_each_time(server: Running, kind: str) -> None:
    """The loop does not begin many requests without a look at what else is to be done."""
    request, statuses = KINDS[kind]
    round_, begun = [0], list[int]()
    over = threading.Event()

    def tick() -> None:
        round_[0] += 1
        if not over.is_set():
            server.loop.call_soon(tick)

    async def called(*given: Any, make: Any = Router.__call__) -> None:
        begun.append(round_[0])
        await make(*given)

    with mock.patch.object(Router, "__call__", called), ExitStack() as stack:
        server.call(tick)
        opened = at_once(server, [request] * 40, stack)
        assert {answer(each)[0] for each in opened} <= statuses
        over.set()
    assert len(begun) == 41 and max(Counter(begun).values()) <= 2  # one that waited, and one that has just come


def test_pipelined_requests(server: Running) -> None:
    with ExitStack() as stack:
        (connection,) = at_once(server, [get("/health") * 10 + get("/nothing", "Connection: close")], stack)
        data = b"".join(iter(partial(connection.recv, 65536), b""))
    assert data.count(b"HTTP/1.1 200") == 10 and data.count(b"HTTP/1.1 404") == 1


def test_too_many_of_an_address(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused, and counted; those of another address are served."""
    monkeypatch.setattr(security, "MOST_WAITING", 10)
    monkeypatch.setattr(security, "GAP", 0.2)
    with ExitStack() as stack:
        opened = at_once(server, [get("/health")] * 30, stack)
        there = ("127.0.0.1", server.port)
        other = stack.enter_context(socket.create_connection(there, SECONDS, source_address=("127.0.0.2", 0)))
        other.sendall(get("/ready"))
        assert answer(other)[0] == 200
        found = [answer(each) for each in opened]
    refused = [(headers, body) for status, headers, body in found if status == 429]
    assert len(refused) >= 18 and {status for status, *_ in found} == {200, 429}
    headers, body = refused[0]
    assert json.loads(body)["error"]["code"] == "limit"
    assert headers["retry-after"] == "5" and headers["content-security-policy"]
    assert f'redraft_refusals_total{{code="limit"}} {len(refused)}.0' in server.hub.metrics.text().decode()


def test_addresses_alternate() -> None:
    async def work() -> list[str]:
        found, taking = list[str](), Turns(lambda: False)

        async def take(address: str) -> None:
            await taking.turn(address)
            found.append(address)

        async with asyncio.TaskGroup() as tasks:
            for address in ("a", "a", "a", "a", "b", "c"):
                tasks.create_task(take(address))
        return found

    assert asyncio.run(work()) == ["a", "a", "b", "c", "a", "a"]


class Quick(asyncio.SelectorEventLoop):
    """A loop whose time passes only where something waits for it."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, *given: Any, **more: Any) -> asyncio.TimerHandle:  # type: ignore[override]
        self.now += delay
        return super().call_later(0, *given, **more)


@pytest.mark.parametrize("cost", [0.0, 0.0003, 0.001, LONGEST, 1.0])
@pytest.mark.parametrize("working", [False, True])
@pytest.mark.parametrize("burst", [0.01, 0.05])
def test_share_while_an_engine_works(burst: float, working: bool, cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a burst, turns have their share of the time, and otherwise as much as there is; none waits for long."""
    monkeypatch.setattr(security, "BURST", burst)
    used = [0.0]
    taking = Turns(lambda: working, lambda: used[0])

    async def take(address: str) -> None:
        await taking.turn(address)
        used[0] += cost

    async def work() -> float:
        await asyncio.gather(*(take(str(number % 7)) for number in range(200)))
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=Quick) as runner:
        waited = runner.run(work())
    rests = (200 * min(cost, LONGEST) - burst) / SHARE if working else 0.0
    assert waited == pytest.approx(max(200 * GAP, rests), rel=0.02)


def test_an_audience_is_let_in_at_once() -> None:
    """A hundred browsers open a page of 25 files while an engine works all the time."""
    used = [0.0]
    taking = Turns(lambda: True, lambda: used[0])

    async def browse(number: int) -> float:
        for _ in range(25):
            await taking.turn("hall")
            used[0] += 0.001
        return asyncio.get_running_loop().time()

    async def work() -> float:
        return max(await asyncio.gather(*map(browse, range(100))))

    with asyncio.Runner(loop_factory=Quick) as runner:
        assert runner.run(work()) < 5


def test_connections_one_each_time(server: Running) -> None:
    """Those that wait to be accepted, many more than one, are accepted one by one, with other work in between."""
    round_, begun, over = [0], list[int](), threading.Event()

    def tick() -> None:
        round_[0] += 1
        if not over.is_set():
            server.loop.call_soon(tick)

    def accepted(listening: Any, real: Any = socket.socket.accept) -> Any:
        begun.append(round_[0])
        return real(listening)

    where = "127.0.0.1", server.port
    with mock.patch.object(Listening, "accept", accepted), ExitStack() as stack:
        with Held(server):
            server.loop.call_soon_threadsafe(tick)
            for _ in range(100):  # each in less than the second after which the system tries again
                stack.enter_context(socket.create_connection(where, 0.9))
        eventually(lambda: len(server.server.server_state.connections) >= 100)
        over.set()
    assert max(Counter(begun).values()) <= 2


def test_connection_at_the_end(server: Running) -> None:
    """A connection that comes just as the server ends is closed with it, not lost between being accepted and served."""
    connected = list[socket.socket]()

    def connect() -> None:
        connected.append(socket.create_connection(("127.0.0.1", server.port), SECONDS))
        server.loop.call_soon(server.loop.call_soon, end)  # that is, after the loop has seen that somebody connects

    def end() -> None:
        server.server.should_exit = True

    server.call(connect)
    eventually(lambda: connected)
    with connected[0], suppress(ConnectionError):
        assert connected[0].recv(1) == b""


def test_half_requests(server: Running) -> None:
    """Clients that leave within a request leave nothing behind."""
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert server.ask("/health").status == 200
    eventually(lambda: len(server.server.server_state.connections) <= 1)


def test_client_that_leaves(server: Running) -> None:
    """Nobody waits for its translation, so it is given up."""
    text = "\n".join(f"we saw her duck {number}" for number in range(800))
    body = json.dumps({"text": text, "targets": ["de"]}).encode()
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
        connection.sendall(post("/v1/translate", body))
        eventually(lambda: server.engine.scheduler.requests)
    eventually(lambda: not server.engine.scheduler.requests)


def test_what_is_not_http(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
        assert answer(connection)[0] == 400
    for path in ("/nothing", "/v1/translate"):
        server.ask(path, headers={"host": "127.0.0.1"})
    text = server.hub.metrics.text().decode()
    assert 'redraft_refusals_total{code="protocol"} 1.0' in text
    assert 'redraft_refusals_total{code="missing"} 1.0' in text
