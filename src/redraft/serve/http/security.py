"""What comes before every request: its turn, access control by web origin and host name, and headers.

The event loop would otherwise answer everything that has arrived before it sends the next caption, and meanwhile the
engine's thread would wait for Python's interpreter lock.  While an engine works, they have a share of the processor:
what an audience needs that opens a page together at once, and more only slowly.

Nothing is limited by address below `MOST_WAITING`: an audience in one hall often has one address, and a viewer loads
some 20 files.

A websocket's tiny frames, pings and continuations, and a request's tiny headers, cost far more time to parse than to
send, and nothing above the protocol sees most of them.  So what a connection receives is handed on in small pieces, the
processor time that this takes is measured, and reading rests until the connection has used no more than its share.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, MutableMapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.protocol.codes import CODES, Refused
from redraft.serve.access import Rate, one_client
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import is_loopback

#: Minimum seconds between two turns, of which a request takes about half: at most 1000 requests a second.
GAP = 0.001
#: Share of the time that turns may use while an engine works, seconds of processor time that they may use at once, and
#: most seconds that one of them counts for.
SHARE, BURST, LONGEST = 1 / 6, 10.0, 0.002
#: Maximum number of requests of one address that wait: as many as 600 browsers send at the same moment.
MOST_WAITING = 4000


class Turns:
    """Turns begin one by one, `GAP` seconds apart or more; each address has a queue, and they alternate.

    Args:
        working: returns whether an engine works.
        used: returns the processor time of this thread in seconds.
    """

    def __init__(self, working: Callable[[], bool], used: Callable[[], float] = time.thread_time) -> None:
        self._working, self._used = working, used
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        #: Runs from each turn to the next, also if nothing waits: a long round of the loop outlasts the gap.
        self._timer: asyncio.TimerHandle | None = None
        #: Processor time at the last turn.
        self._before = 0.0
        #: Seconds of processor time left to use.
        self._bucket = Rate(SHARE, BURST)

    async def turn(self, address: str) -> None:
        """Wait for the turn of an address.  Raises `Refused`, at once, if too many of it wait."""
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._before = self._used()
            self._timer = loop.call_later(GAP, self._next)
            return
        queue = self._waiting.setdefault(address, deque())
        if len(queue) >= MOST_WAITING:
            raise Refused("limit", "too many requests from this address are waiting: try again in 5 seconds")
        queue.append(waiting := loop.create_future())
        await waiting

    def _next(self) -> None:
        """Begin the next turn, after a rest if those before have used more than their share."""
        loop = asyncio.get_running_loop()
        self._bucket.fill(loop.time())
        if self._working():
            self._bucket.left -= min(self._used() - self._before, LONGEST)
        if rest := self._bucket.wait():
            self._timer = loop.call_later(rest, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        address, queue = self._waiting.popitem(last=False)
        waiting = queue.popleft()
        if queue:
            self._waiting[address] = queue
        if not waiting.done():
            waiting.set_result(None)
        self._before = self._used()
        self._timer = asyncio.get_running_loop().call_later(GAP, self._next)


#: Bytes read at a time: the parser needs some milliseconds for as many of the smallest frames.
_PIECE = 2048
#: Share of the time that one connection may use, and seconds of processor time that it may use at once.
READ_SHARE, READ_BURST = 0.1, 0.01
#: Seconds after which a connection is closed that has wanted more than its share all the while.
PATIENCE = 30.0
#: Where all connections of a thread's loop read to, since each hands on at once what it has read.
_room = threading.local()


class Braked(asyncio.BufferedProtocol):
    """Hands what a connection receives on to a protocol, for which it is the transport, too.

    Nothing is read while the peer does not read either: answers to its pings would pile up.

    Args:
        used: returns the processor time of this thread in seconds.
    """

    def __init__(self, inner: asyncio.Protocol, used: Callable[[], float] = time.thread_time) -> None:
        self._inner, self._used = inner, used
        self.connection_lost, self.eof_received = inner.connection_lost, inner.eof_received  # type: ignore[method-assign]
        self._transport: Any = None
        #: Why nothing is read: the protocol does not want to, the peer does not read, or it had more than its share.
        self._reasons: set[str] = set()
        self._bucket = Rate(READ_SHARE, READ_BURST)
        #: When the connection last had its whole burst left.
        self._modest = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport
        self._modest = asyncio.get_running_loop().time()
        self.write = transport.write  # type: ignore[attr-defined]  # found at once, for each message to each viewer
        self._inner.connection_made(self)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        """Return everything else of the transport."""
        return getattr(self._transport, name)

    def pause_reading(self) -> None:
        """Read no more: the protocol does not want to."""
        self.pause("unwanted")

    def resume_reading(self) -> None:
        """Read again: the protocol wants to."""
        self.resume("unwanted")

    def pause_writing(self) -> None:
        """Read no more until the peer reads."""
        self.pause("unread")
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Read again."""
        self.resume("unread")
        self._inner.resume_writing()

    def pause(self, reason: str) -> None:
        """Read no more, for a reason."""
        self._reasons.add(reason)
        self._transport.pause_reading()

    def resume(self, reason: str) -> None:
        """Read again, unless there is another reason not to."""
        self._reasons.discard(reason)
        if not self._reasons:
            self._transport.resume_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        if not hasattr(_room, "piece"):
            _room.piece = memoryview(bytearray(_PIECE))
        return _room.piece  # type: ignore[no-any-return]

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on what was read."""
        self.data_received(bytes(_room.piece[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Hand on what was received, and rest if that took more time than there was left."""
        began = self._used()
        self._inner.data_received(data)
        now = asyncio.get_running_loop().time()
        if self._bucket.fill(now):
            self._modest = now
        self._bucket.left -= self._used() - began
        if not (rest := self._bucket.wait()):
            return
        if now - self._modest > PATIENCE:
            self._transport.abort()
            return
        self.pause("more than its share")
        asyncio.get_running_loop().call_later(rest, self.resume, "more than its share")


HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "cache-control": "no-cache",  # always revalidate: files of two versions must not mix
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self)",
}


_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

#: Maximum length of a query in bytes: reading a longer one, which needs no key, would take many milliseconds.
MOST_QUERY = 8192


#: Addresses for programs, which know the server by any name: load balancers, service managers, Prometheus.
MONITORED = ("/health", "/ready", "/metrics")


class Guard:
    """ASGI middleware that rejects unknown hosts and origins, and long queries, and adds `HEADERS` to every response.

    Other requests begin in turn.

    Browsers let any page open a websocket to any server and send the page's origin; clients without an origin are not
    browsers.  The host check prevents DNS rebinding; `MONITORED` is exempt, since no page needs it.

    Args:
        hub: the server, whose settings list hosts and origins.
        local: whether to reject clients on other machines; for servers that others listen for (Ray Serve).
    """

    def __init__(self, app: ASGIApp, hub: Hub, *, local: bool = False) -> None:
        self._app, self._hub, self._local, settings = app, hub, local, hub.settings
        self._turns = Turns(lambda: any(each.scheduler.working for each in hub.engines.all))
        # This machine's own names stay valid: they cannot be spoofed by DNS, and health checks use them.
        own = {"localhost", "127.0.0.1", "::1", settings.host, *settings.hosts}
        #: Names that it answers to; empty for all.
        self._hosts = {name.lower() for name in own} if settings.local or settings.hosts else set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = list(message.get("headers", ()))
                given = {name for name, _ in headers}
                message["headers"] = headers + [each for each in _RAW_HEADERS if each[0] not in given]
            await send(message)

        try:
            self._check(scope)
            await self._turns.turn(one_client((scope.get("client") or ("",))[0]))
        except Refused as refused:
            self._hub.metrics.count_refusal(refused.code)
            status = CODES[refused.code].status
            await JSONResponse(refused.body, status, refused.headers)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        if len(scope.get("query_string", b"")) > MOST_QUERY:
            raise Refused("size", f"a query must have at most {MOST_QUERY} bytes")
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._local and not is_loopback((scope.get("client") or ("",))[0]):
            raise Refused(
                "origin", "only this machine may connect: the operator can allow others with the settings host and keys"
            )
        if (
            self._hosts
            and scope.get("path") not in MONITORED
            and (parsed_url(f"//{host}").hostname or "") not in self._hosts
        ):
            raise Refused(
                "origin", "the server is not known by this host name: the operator can allow it with the setting hosts"
            )
        safe = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        allowed = not {origin, "*"}.isdisjoint(self._hub.settings.origins)
        if origin is not None and not safe and not allowed and parsed_url(origin).netloc != host:
            raise Refused(
                "origin", "pages of this origin may not connect: the operator can allow it with the setting origins"
            )


def parsed_url(address: str) -> SplitResult:
    """Return the parts of an address, empty if it is invalid."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
