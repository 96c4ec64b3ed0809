"""Connections and requests take turns, so that many of them delay captions by one, not by all of them.

The event loop would otherwise answer everything that has arrived before it sends the next caption, and meanwhile the
engine's thread would wait for Python's interpreter lock.  While an engine works, they have a share of the processor:
what an audience needs that opens a page together at once, and more only slowly.

Nothing is limited by address below `MOST_WAITING`: an audience in one hall often has one address, and a viewer loads
some 20 files.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from redraft.protocol.codes import Refused
from redraft.serve.access import Bucket

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
        self._bucket = Bucket(SHARE, BURST)

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
