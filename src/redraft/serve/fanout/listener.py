"""The connection on which a replica receives what others publish."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeAlias

from redraft.serve.fanout.feed import RETRIES
from redraft.serve.fanout.store import TROUBLE, Store

log = logging.getLogger(__name__)

#: Seconds of silence after which Redis is pinged, and after which again the connection is given up.
_SILENCE = 5.0
#: A channel that is always subscribed to, since a connection without channels cannot be read.
_ALWAYS = "redraft:replicas"


#: Called with every message of a channel, and with None if messages may have been missed: after subscribing to it, and
#: after every failure.
Subscriber: TypeAlias = Callable[[str | None], Coroutine[Any, Any, None]]


class Listener:
    """Receives messages while it runs, whatever happens to Redis.

    Args:
        store: the connection to Redis.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscribers: dict[str, Subscriber] = {}
        self._pubsub = store.redis.pubsub()

    def __contains__(self, channel: str) -> bool:
        """Whether a channel is followed."""
        return channel in self._subscribers

    async def add(self, channel: str, subscriber: Subscriber) -> None:
        """Follow a channel; if Redis is unavailable, as soon as it is back."""
        self._subscribers[channel] = subscriber
        if self._pubsub.subscribed:
            try:
                await self._pubsub.subscribe(channel)
            except TROUBLE:  # `run` fails too, and then subscribes to everything again
                log.debug("a channel is followed later")

    async def remove(self, channels: Iterable[str]) -> None:
        """Stop following channels."""
        known = [channel for channel in channels if self._subscribers.pop(channel, None)]
        if known and self._pubsub.subscribed:
            try:
                await self._pubsub.unsubscribe(*known)
            except TROUBLE:
                log.debug("channels are left with the connection")

    async def run(self) -> None:
        """Listen until cancelled."""
        waits = RETRIES.waits()
        while True:
            try:
                async with self._store.redis.pubsub() as self._pubsub:
                    await self._pubsub.subscribe(_ALWAYS)
                    if self._subscribers:  # channels added from now on are subscribed to immediately
                        await self._pubsub.subscribe(*self._subscribers)
                    self._store.worked()
                    waits = RETRIES.waits()
                    await self._listen()
            except TROUBLE as error:
                self._store.failed(error)
            except Exception:  # otherwise no viewer here would see sessions of other replicas any more
                log.exception("the connection to Redis failed")
            await asyncio.sleep(next(waits))

    async def _listen(self) -> None:
        """Pass messages on.

        Raises:
            OSError: Redis has not responded in time.
        """
        silent = False
        while True:
            message = await self._pubsub.get_message(timeout=_SILENCE)
            if message is None:
                if silent:
                    raise TimeoutError
                silent = True
                await self._pubsub.ping()
                continue
            silent = False
            subscriber = self._subscribers.get(message["channel"] or "")
            if subscriber is None or message["type"] not in ("subscribe", "message"):
                continue
            try:
                await subscriber(message["data"] if message["type"] == "message" else None)
            except TROUBLE:
                raise
            except Exception:  # a bad message of one session must not stop those of others
                log.exception("a message of another replica could not be processed")
