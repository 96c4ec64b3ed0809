"""A server on a table model, in a thread of the tests, on a free port of this machine."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.sync.client import ClientConnection, connect

from redraft.decoding.types import TARGET
from redraft.engine.engine import Engine
from redraft.serve.app import make_hub
from redraft.serve.run import CaptionServer, context_of, listen
from redraft.serve.service import Service
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import CachedModel

SECONDS = 20
#: What was sent over the wire to see whether a server stands it, by kind.
FUZZED: Counter[str] = Counter()
#: Counts attempts to resume a session.
ATTEMPTS = itertools.count(1)


@dataclass
class Response:
    """What came back over HTTP."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Socket:
    """A websocket that speaks JSON."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def say(self, type: str, **fields: Any) -> None:
        self.connection.send(json.dumps({"type": type, **fields}))

    def hear(self, seconds: float = SECONDS) -> dict[str, Any]:
        """The next message that says more than that the connection works, which it says every few seconds."""
        end = time.monotonic() + seconds
        while True:
            found: dict[str, Any] = json.loads(self.connection.recv(max(0.0, end - time.monotonic())))
            if found["type"] != "alive":
                return found

    def until(self, *types: str) -> list[dict[str, Any]]:
        """All messages up to the first of these types."""
        end = time.monotonic() + 6 * SECONDS
        heard = [self.hear()]
        while heard[-1]["type"] not in types:
            heard.append(self.hear(min(SECONDS, end - time.monotonic())))
        return heard

    def start(self, *targets: str, **fields: Any) -> dict[str, Any]:
        """Begin a session or resume one, and return what the server says to that."""
        if "token" in fields:
            fields.setdefault("connection", next(ATTEMPTS))
        self.say("start", targets=targets or ("de",), **fields)
        return self.hear()


@dataclass
class Running:
    """A server that runs."""

    hub: Hub
    server: CaptionServer
    port: int
    model: CachedModel
    loop: asyncio.AbstractEventLoop

    def call(self, work: Callable[[], object]) -> None:
        """Have something done on the server's loop."""
        self.loop.call_soon_threadsafe(work)

    def forget(self, session: LiveSession) -> None:
        """Forget a session and close its owner's connection, as a restart does."""
        done = threading.Event()

        def work() -> None:
            assert session.broadcast.owner is not None
            session.broadcast.owner.close(1012, "restarted")
            self.hub.forget(session)
            done.set()

        self.call(work)
        assert done.wait(SECONDS)

    def kill(self) -> None:
        """Send and store nothing more, and end, as though the process was killed."""
        done = threading.Event()

        def work() -> None:
            for session in self.hub.sessions.values():
                self.hub.fanout.drop(session)
            for listening in self.server.servers:
                listening.close()
            for connection in list(self.server.server_state.connections):
                connection.transport.abort()
            self.server._draining = self.loop.create_task(asyncio.sleep(0))
            self.server.should_exit = True
            done.set()

        self.call(work)
        assert done.wait(SECONDS)

    @property
    def engine(self) -> Engine:
        """The engine, or the first of several."""
        return self.hub.engines.all[0]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def socket(self, path: str = "/v1/live", **options: Any) -> Iterator[Socket]:
        with connect(f"ws://127.0.0.1:{self.port}{path}", **{"open_timeout": 3 * SECONDS, **options}) as connection:
            yield Socket(connection)

    def ask(
        self, path: str, body: Any = None, method: str | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        kind = {"content-type": "application/json"}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, kind | (headers or {}), method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as found:
                return Response(found.status, dict(found.headers), found.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, dict(error.headers), error.read().decode())


@contextmanager
def running(model: CachedModel | None = None, *others: CachedModel, **settings: Any) -> Iterator[Running]:
    """A server while the block lasts, with an engine for each model; none if it serves viewers only."""
    model = model or CachedModel(1)
    chosen = ServeSettings(**{"port": 0, "starts_per_second": 1000, "methods": ("ssbd", "ar"), **settings})
    engines = [] if chosen.viewers_only else [{TARGET: each} for each in (model, *others)]
    service = Service(engines[0], chosen) if engines else None
    hub = make_hub(chosen, service, engines)
    listening = listen("127.0.0.1", chosen.port)
    server = CaptionServer(hub, context_of(chosen, ()))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([listening])), daemon=True)
    thread.start()
    try:
        end = time.monotonic() + 3 * SECONDS
        while not server.started and thread.is_alive():
            assert time.monotonic() < end
            thread.join(0.01)
        yield Running(hub, server, listening.getsockname()[1], model, loop)
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(server.stop)
        thread.join(3 * SECONDS)
        assert not thread.is_alive()
        listening.close()
        loop.close()
