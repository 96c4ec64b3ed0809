"""Every connection has an `Outbox`: a bounded queue, in which a newer message replaces the one it supersedes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterator

from redraft.captions.languages import canonical_tag
from redraft.protocol import Frame
from redraft.serve.sessions.cells import History

#: Maximum number of messages queued for a connection.
MOST_MESSAGES = 256


def close_reason(sentence: str) -> str:
    """Shorten a sentence to fit into a close frame: 125 bytes, of which the code takes two."""
    return sentence.encode()[:123].decode(errors="ignore")


class Outbox:
    """Messages of one connection, in order.

    Args:
        most: maximum number of queued messages; beyond that the reader is too slow and is disconnected.
        stays: whether the connection outlives a session, as for viewers of a room.
        languages: canonical tags of the languages whose captions its reader wants; empty for all.
    """

    def __init__(
        self, most: int = MOST_MESSAGES, *, stays: bool = False, languages: frozenset[str] = frozenset()
    ) -> None:
        self.stays, self.languages = stays, languages
        #: How the connection is closed: a close code (RFC 6455) and a reason.
        self.closing: tuple[int, str] | None = None
        #: The latest history that was queued.
        self.history: History | None = None
        #: Whether messages were lost because the reader was too slow.
        self.slow = False
        #: Number of messages that were taken from the queue.
        self.sent = 0
        self._most = most
        #: Messages, and those that are made when their turn comes.
        self._waiting: OrderedDict[Hashable, Frame | Iterator[Frame]] = OrderedDict()
        self._news, self._space = asyncio.Event(), asyncio.Event()
        self._space.set()

    def wants(self, language: str | None) -> bool:
        """Whether its reader wants messages about a language; everybody wants those about none in particular."""
        return language is None or not self.languages or canonical_tag(language) in self.languages

    def put(self, message: Frame | Iterator[Frame], key: Hashable | None = None, *, counts: bool = True) -> None:
        """Queue a message, or messages each of which is made when it is sent: a history must not hold up others.

        It replaces a queued message with the same ``key``.

        The replacement keeps its place in the queue: at the end, a message that is replaced often would never be sent
        to a slow reader.

        Args:
            counts: whether it counts towards ``most``.
        """
        self._most += not counts
        if isinstance(message, History):
            self.history = message
        if self.closing or self.slow:  # after a gap, more messages would look complete
            return
        self._waiting[object() if key is None else key] = message
        if len(self._waiting) > self._most:
            self.slow = True
            self._waiting.clear()
        if 2 * len(self._waiting) > self._most:
            self._space.clear()
        self._news.set()

    def drop(self, key: Hashable) -> None:
        """Drop a queued message that is out of date."""
        self._waiting.pop(key, None)

    def close(self, code: int, reason: str) -> None:
        """Close the connection once the queue is sent; only the first call has an effect."""
        self.closing = self.closing or (code, close_reason(reason))
        self._news.set()

    @property
    def empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting

    async def get(self) -> Frame | None:
        """Wait for the next message; None after the last one."""
        if self._waiting and not isinstance(next(iter(self._waiting.values())), Frame):
            await asyncio.sleep(0)  # sending need not let others have a turn
        while (message := self._next()) is None:
            if self.closing or self.slow:
                return None
            self._news.clear()
            await self._news.wait()
        if 2 * len(self._waiting) <= self._most:
            self._space.set()
        self.sent += 1
        return message

    def _next(self) -> Frame | None:
        """Take the next message from the queue, or from the history at its front; None if there is none."""
        while self._waiting:
            key, first = next(iter(self._waiting.items()))
            message = first if isinstance(first, Frame) else next(first, None)
            if isinstance(first, Frame) or message is None:
                del self._waiting[key]
            if message is not None:
                return message
        return None

    async def room(self) -> None:
        """Wait until the queue is at most half full."""
        await self._space.wait()
