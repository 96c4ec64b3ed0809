"""Connections take turns, so that a burst of requests delays captions by one request, not by all of them.

The event loop would otherwise read, answer and refuse everything that has arrived before it sends the next caption, and
meanwhile the engine's thread would wait for Python's interpreter lock.  A turn comes before a request is parsed, so it
holds for every path and for the handshakes of websockets, and what is answered with an error waits like the rest.

Nothing is limited by address below `MOST_WAITING`: an audience in one hall often has one address, and a viewer loads
some 20 files.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol

from redraft.protocol.codes import CODES, Refused
from redraft.serve.http.security import HEADERS

#: Minimum seconds between two turns, of which a request takes about half: at most 1000 requests a second.
GAP = 0.001
#: Maximum number of requests of one address that wait: as many as 600 browsers send at the same moment.
MOST_WAITING = 4000


class Turns:
    """Calls functions one by one, `GAP` seconds apart; each address has a queue, and the addresses alternate."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Callable[[], bool]]] = OrderedDict()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def take(self, address: str, serve: Callable[[], bool]) -> bool:
        """Call a function, now or when it is its turn; return False, without a call, if too many of the address wait.

        Args:
            serve: the function; it returns False if there was nothing to do, so that the turn goes to the next one.
        """
        if not self._waiting and asyncio.get_running_loop().time() >= self._due:
            self._give(serve)
            return True
        queue = self._waiting.setdefault(address, deque())
        if len(queue) >= MOST_WAITING:
            return False
        queue.append(serve)
        self._wait()
        return True

    def _give(self, serve: Callable[[], bool]) -> bool:
        self._due = asyncio.get_running_loop().time() + GAP
        return serve()

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._due, self._next)

    def _next(self) -> None:
        self._timer = None
        served = False
        while self._waiting and not served:
            address, queue = self._waiting.popitem(last=False)
            serve = queue.popleft()
            if queue:
                self._waiting[address] = queue
            served = self._give(serve)
        if self._waiting:
            self._wait()


class InTurn(H11Protocol):
    """A connection that handles a request when it is its turn.  What it has received until then waits, unparsed.

    Args:
        refused: called with the error code of a request that the application does not see.
    """

    def __init__(self, *args: Any, turns: Turns, refused: Callable[[str], object], **more: Any) -> None:
        super().__init__(*args, **more)
        self._turns, self._refused, self._waits = turns, refused, False

    def handle_events(self) -> None:
        """Parse what has been received: at once if it belongs to a request in progress, otherwise in turn."""
        received = len(self.conn.trailing_data[0])
        if self._waits:
            if received > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
        elif not received or (self.cycle is not None and not self.cycle.response_complete):
            super().handle_events()
        else:
            self._unset_keepalive_if_required()
            self._waits = True
            if not self._turns.take(self.client[0] if self.client else "", self._serve):
                self._refused("limit")
                self.transport.write(_TOO_MANY)
                self.transport.close()

    def _serve(self) -> bool:
        self._waits = False
        if self.transport.is_closing():
            return False
        self.flow.resume_reading()
        super().handle_events()
        return True

    def eof_received(self) -> bool:
        """Keep the connection of a client that sends no more and waits for its response."""
        return self._waits

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refused("protocol")
        super().send_400_response(msg)


def _whole_response(refused: Refused) -> bytes:
    """Return the bytes of a refusal after which the connection is closed."""
    body = json.dumps(refused.body).encode()
    more = {"content-type": "application/json", "content-length": len(body), "retry-after": 5, "connection": "close"}
    lines = (f"{name}: {value}\r\n" for name, value in {**HEADERS, **more}.items())
    return f"HTTP/1.1 {CODES[refused.code].status} \r\n{''.join(lines)}\r\n".encode() + body


_TOO_MANY = _whole_response(Refused("limit", "too many requests of this address are waiting: try again in 5 seconds"))
