"""The queue of messages to send over one connection: bounded, and a newer message replaces the one it supersedes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Closing:
    """How a connection is closed: a close code (RFC 6455) and a reason."""

    code: int
    reason: str


def close_reason(sentence: str) -> str:
    """Shorten a sentence to fit into a close frame: 125 bytes, of which the code takes two."""
    return sentence.encode()[:123].decode(errors="ignore")


class Outbox:
    """Messages of one connection, in order.

    Args:
        most: maximum number of queued messages; beyond that the reader is too slow and is disconnected.
        stays: whether the connection outlives a session, as for viewers of a room.
        languages: the languages whose captions its reader wants; empty for all.
    """

    def __init__(self, most: int, *, stays: bool = False, languages: frozenset[str] = frozenset()) -> None:
        self.stays, self.languages = stays, languages
        self.closing: Closing | None = None
        #: Whether messages were lost because the reader was too slow.
        self.slow = False
        self._most = most
        self._waiting: OrderedDict[Hashable, str] = OrderedDict()
        self._put = 0
        self._news, self._space = asyncio.Event(), asyncio.Event()
        self._space.set()

    def wants(self, language: str | None) -> bool:
        """Whether its reader wants messages about a language; everybody wants those about none in particular."""
        return language is None or not self.languages or language in self.languages

    def put(self, message: str, key: Hashable | None = None) -> None:
        """Queue a message.  It replaces a queued message with the same ``key``.

        The replacement keeps its place in the queue: at the end, a message that is replaced often would never be sent
        to a slow reader.
        """
        if self.closing or self.slow:  # after a gap, more messages would look complete
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
        """Queue many messages, such as those a resuming client has missed; they do not count towards ``most``."""
        for message in messages:
            self._most += 1
            self.put(message)

    def drop(self, key: Hashable) -> None:
        """Drop a queued message that is out of date."""
        self._waiting.pop(key, None)

    def close(self, code: int, reason: str) -> None:
        """Close the connection once the queue is sent; only the first call has an effect."""
        self.closing = self.closing or Closing(code, close_reason(reason))
        self._news.set()

    @property
    def empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting

    async def get(self) -> str | None:
        """Wait for the next message; None after the last one."""
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
        """Wait until the queue is at most half full."""
        await self._space.wait()
