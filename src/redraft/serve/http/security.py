"""What comes before every request: access control by web origin and host name, and its turn; and headers."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.protocol.codes import CODES, Refused
from redraft.serve.access import one_client
from redraft.serve.http.turns import Turns
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import is_loopback

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
        self._turns = Turns(lambda: hub.engines.working)
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
