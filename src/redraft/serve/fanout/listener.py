"""The one connection on which a replica hears what others publish."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol

from redraft.serve.fanout.feed import RETRIES
from redraft.serve.fanout.store import TROUBLE, Store

log = logging.getLogger(__name__)

#: Seconds without a word after which Redis is asked whether it is still there, and given up after as many more.
_SILENCE = 5.0
#: There is always a channel, since a connection without one cannot be listened on.
_ALWAYS = "redraft:replicas"


class Topic(Protocol):
    """What follows a channel."""

    async def catch_up(self) -> None:
        """Find out what may have been missed: called when the channel begins to be heard, and after every failure."""

    async def heard(self, text: str) -> None:
        """Take news in."""


class Listener:
    """Listens for as long as it runs, whatever happens to Redis.

    Args:
        store: what to listen to.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._topics: dict[str, Topic] = {}
        self._pubsub = store.redis.pubsub()

    def __contains__(self, channel: str) -> bool:
        """Whether a channel is followed."""
        return channel in self._topics

    async def add(self, channel: str, topic: Topic) -> None:
        """Follow a channel; while Redis cannot be used, as soon as it can be."""
        self._topics[channel] = topic
        if self._pubsub.subscribed:
            try:
                await self._pubsub.subscribe(channel)
            except TROUBLE:  # `run` meets it too, and subscribes to everything again
                log.debug("a channel is followed later")

    async def remove(self, channels: Iterable[str]) -> None:
        """Follow channels no longer."""
        known = [channel for channel in channels if self._topics.pop(channel, None)]
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
                    if self._topics:  # those that are added from now on are subscribed to at once
                        await self._pubsub.subscribe(*self._topics)
                    self._store.worked()
                    waits = RETRIES.waits()
                    await self._listen()
            except TROUBLE as error:
                self._store.failed(error)
            except Exception:  # else nobody here would see sessions of other replicas any more
                log.exception("the connection to Redis failed")
            await asyncio.sleep(next(waits))

    async def _listen(self) -> None:
        """Hand on what comes.

        Raises:
            OSError: Redis has not answered for a while.
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
            topic = self._topics.get(message["channel"] or "")
            if topic is not None and message["type"] == "subscribe":
                await self._attempt(topic.catch_up())
            elif topic is not None and message["type"] == "message":
                await self._attempt(topic.heard(message["data"]))

    async def _attempt(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except TROUBLE:
            raise
        except Exception:  # one session's news must not keep those of others from coming
            log.exception("news could not be taken in")
