"""What waits to be sent over one connection: bounded, with only the newest of what replaces each other."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Closing:
    """How a connection ends: a close code of RFC 6455 and a reason in words."""

    code: int
    reason: str


def close_reason(sentence: str) -> str:
    """As much of a sentence as fits into a close frame, which holds 125 bytes, two of them the code."""
    return sentence.encode()[:123].decode(errors="ignore")


class Outbox:
    """Messages of one connection, in order.

    Args:
        most: how many may wait before the reader counts as too slow.
        stays: whether the connection outlives a session: that of a viewer of a room.
    """

    def __init__(self, most: int, *, stays: bool = False) -> None:
        self.stays = stays
        self.closing: Closing | None = None
        #: Whether it was not read in time, so that messages were lost.
        self.slow = False
        self._most = most
        self._waiting: OrderedDict[Hashable, str] = OrderedDict()
        self._put = 0
        self._news, self._space = asyncio.Event(), asyncio.Event()
        self._space.set()

    def put(self, message: str, key: Hashable | None = None) -> None:
        """Have a message sent.  One with the same ``key`` that still waits is dropped: the newest takes its place.

        It does not go to the end, where what is replaced again and again would never be sent to a slow reader.
        """
        if self.closing or self.slow:  # what comes after a gap would look like all there is
            return
        self._put += 1
        self._waiting[self._put if key is None else key] = message
        if len(self._waiting) > self._most:
            self.slow = True
            self._waiting.clear()
        if 2 * len(self._waiting) > self._most:
            self._space.clear()
        self._news.set()

    def fill(self, messages: Iterable[str]) -> None:
        """Have many sent at once, such as all that a returning client has missed; they do not count as slowness."""
        for message in messages:
            self._most += 1
            self.put(message)

    def drop(self, key: Hashable) -> None:
        """Drop a message that still waits, since what it says is out of date."""
        self._waiting.pop(key, None)

    def close(self, code: int, reason: str) -> None:
        """Close the connection once everything that waits has been sent; the first call counts."""
        self.closing = self.closing or Closing(code, close_reason(reason))
        self._news.set()

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    async def get(self) -> str | None:
        """The next message, as soon as there is one; None when there will be no more."""
        while not self._waiting:
            if self.closing or self.slow:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._waiting.popitem(last=False)[1]
        if 2 * len(self._waiting) <= self._most:
            self._space.set()
        return message

    async def room(self) -> None:
        """Wait until no more than half of what may wait is there, so that the next answer has room."""
        await self._space.wait()
