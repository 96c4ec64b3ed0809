"""Requests take turns, so that a burst of them delays captions by one request, not by all of them.

The event loop would otherwise answer everything that has arrived before it sends the next caption, and meanwhile the
engine's thread would wait for Python's interpreter lock.

Nothing is limited by address below `MOST_WAITING`: an audience in one hall often has one address, and a viewer loads
some 20 files.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from redraft.protocol.codes import CODES, Refused
from redraft.serve.http.endpoints import refusal

#: Minimum seconds between two turns, of which a request takes about half: at most 1000 requests a second.
GAP = 0.001
#: Maximum number of requests of one address that wait: as many as 600 browsers send at the same moment.
MOST_WAITING = 4000
_TOO_MANY = Refused("limit", "too many requests of this address are waiting: try again in 5 seconds")


class Turns:
    """ASGI middleware: requests begin one by one, `GAP` seconds apart; each address has a queue, and they alternate.

    Args:
        refused: called with the error code of a refused request.
    """

    def __init__(self, app: ASGIApp, refused: Callable[[str], object] = lambda code: None) -> None:
        self._app, self._refused = app, refused
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        #: Runs from each turn to the next, also if nothing waits: a long round of the loop outlasts the gap.
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when it is its turn; refuse it if too many of its address wait."""
        if scope["type"] != "lifespan" and not await self.turn((scope.get("client") or ("",))[0]):
            self._refused(_TOO_MANY.code)
            await refusal(_TOO_MANY, CODES[_TOO_MANY.code].status)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def turn(self, address: str) -> bool:
        """Wait for the turn of an address; return False, at once, if too many requests of it wait."""
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(GAP, self._next)
            return True
        queue = self._waiting.setdefault(address, deque())
        if len(queue) >= MOST_WAITING:
            return False
        queue.append(waiting := loop.create_future())
        await waiting
        return True

    def _next(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        address, queue = self._waiting.popitem(last=False)
        waiting = queue.popleft()
        if queue:
            self._waiting[address] = queue
        if not waiting.done():
            waiting.set_result(None)
        self._timer = asyncio.get_running_loop().call_later(GAP, self._next)
