"""A replica's part of the fan-out: publishes its own sessions, and lets viewers watch those of other replicas."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias

from redraft import deadlines, protocol
from redraft.protocol.codes import Refused
from redraft.serve.service import DRAINING
from redraft.serve.sessions.fanout import Fanout
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession
from redraft.serve.settings import ServeSettings
from redraft_fanout.feed import RETRIES, Mirror, Publisher
from redraft_fanout.store import TROUBLE, SharedRooms, Store, room_key, session_key

log = logging.getLogger(__name__)

#: A channel that is always subscribed to, since a connection without channels cannot be read.
_ALWAYS = "redraft:replicas"
#: Seconds before a mirror without viewers is dropped, and between two checks of logs.
_IDLE, _LOOK = 10.0, 15.0
ELSEWHERE = "captions of sessions on other replicas are unavailable: try again"


#: Called with every message of a channel, and with None if messages may have been missed: after subscribing to it, and
#: after every failure.
Subscriber: TypeAlias = Callable[[str | None], Coroutine[Any, Any, None]]


class Listener:
    """Receives messages while it runs, whatever happens to Redis."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscribers: dict[str, Subscriber] = {}
        self._pubsub = store.redis.pubsub()

    async def add(self, channel: str, subscriber: Subscriber) -> None:
        """Follow a channel, unless it is followed; if Redis is unavailable, as soon as it is back."""
        if channel in self._subscribers:
            return
        self._subscribers[channel] = subscriber
        if self._pubsub.subscribed:
            with suppress(*TROUBLE):  # `run` fails too, and then subscribes to everything again
                await self._pubsub.subscribe(channel)

    async def remove(self, channels: Iterable[str]) -> None:
        """Stop following channels."""
        known = [channel for channel in channels if self._subscribers.pop(channel, None)]
        if known and self._pubsub.subscribed:
            with suppress(*TROUBLE):
                await self._pubsub.unsubscribe(*known)

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
        """Pass messages on.  Raises `OSError` if Redis has not responded in time."""
        silent = False
        while True:
            message = await self._pubsub.get_message(timeout=deadlines.REDIS)
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


class RedisFanout(Fanout):
    """The fan-out of one server.

    Raises:
        OptionError: the address is invalid.
    """

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        settings, self._rooms = hub.settings, hub.rooms
        self._store = Store(settings, hub.name)
        #: The session of each room.
        self.shared = SharedRooms(self._store, owned=not settings.rooms)
        self._listener = Listener(self._store)
        self._publishers: dict[LiveSession, Publisher] = {}
        self.mirrors: dict[str, Mirror] = {}
        self._looked = time.monotonic()
        #: Sessions without a log at the last check; twice in a row gives one up, since Redis may have restarted.
        self._missing: set[str] = set()
        self._followed: set[str] = set()
        #: Followed rooms to look up again.
        self._stale: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def check(cls, settings: ServeSettings) -> None:
        """Check that Redis can be used; see `Store.check`."""
        asyncio.run(Store(settings).check())

    def start(self) -> None:
        """Start listening."""
        self._soon(self._listener.run())
        self._soon(self._put_offer())

    async def stop(self) -> None:
        """Write everything, then close all connections to Redis."""
        until = time.monotonic() + deadlines.LAST_WORDS
        while time.monotonic() < until and not all(each.quiet for each in self._publishers.values()):
            await asyncio.sleep(0.02)
        until = time.monotonic() + deadlines.LAST_WORDS
        while self._tasks and time.monotonic() < until:
            for task in self._tasks:
                task.cancel()  # again and again: the library may lose one that comes together with a message
            await asyncio.wait(self._tasks, timeout=0.1)
        with suppress(*TROUBLE):
            await self._store.close()

    def drain(self) -> None:
        """Close the connections of viewers of other replicas' sessions."""
        error = protocol.Error(code="draining", message=DRAINING, fatal=True)
        for mirror in self.mirrors.values():
            mirror.broadcast.end(1012, DRAINING, error, staying=True)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        self._watch(asyncio.create_task(work))

    def _watch(self, task: asyncio.Task[None]) -> None:
        """Cancel a task at the end."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def viewers(self) -> int:
        """Number of viewers connected here to sessions of other replicas."""
        return sum(each.broadcast.audience for each in self.mirrors.values())

    # Sessions of this replica

    def reserved(self, begin: protocol.Begin, name: str, owner: str) -> AbstractAsyncContextManager[None]:
        """Reserve a room; see `SharedRooms.taken`."""
        return self.shared.taken(begin, name, owner)

    def publish(self, session: LiveSession) -> None:
        """Publish a session and its captions to other replicas."""
        publisher = self._publishers[session] = Publisher(session, self._store, self._alive, self._lost)
        self._watch(publisher.task)

    def forget(self, session: LiveSession) -> None:
        """Stop publishing a session that has been forgotten."""
        publisher = self._publishers.pop(session, None)
        if publisher is None:
            return
        publisher.forget()
        if room := session.begin.room:
            self._soon(self._leave(room, session.name, publisher))

    def drop(self, session: LiveSession) -> None:
        """Stop publishing a session that another replica has taken over."""
        publisher = self._publishers.pop(session, None)
        if publisher is not None:
            publisher.forgotten = True  # the cancellation may be lost, too
            publisher.task.cancel()

    async def _leave(self, room: str, session: str, publisher: Publisher) -> None:
        await asyncio.wait([publisher.task], timeout=deadlines.LAST_WORDS)
        with suppress(*TROUBLE):
            if publisher.forgotten:
                await self.shared.leave(room, session)
        await self.refresh(room)

    async def moved(self, session: LiveSession) -> bool:
        """Whether another replica has taken over a session; False while Redis cannot be reached."""
        with suppress(*TROUBLE):
            return await self._store.moved(session.name, session.connection)
        return False

    async def _alive(self, session: LiveSession, first: bool) -> None:
        """Renew the session's room in Redis."""
        room = session.begin.room
        if first:
            await self._put_offer()
        if room and self._rooms.find(room).session is session:
            if first:
                await self.shared.show(room, session.name)
                await self.follow_room(room)
            await self.shared.keep(room, session.name, lambda: session.in_use)

    def _lost(self, session: LiveSession) -> None:
        if self._publishers.pop(session, None) is None:  # dropped meanwhile
            return
        self._hub.superseded(session)
        if session.begin.room:
            self._soon(self.refresh(session.begin.room))

    async def _put_offer(self) -> None:
        if not self._hub.settings.viewers_only:
            with suppress(*TROUBLE):
                await self._store.put_offer(self._hub.offer.wire())

    # Sessions of other replicas

    async def find(self, name: str) -> Mirror | None:
        """Return a session of another replica; None if there is none.  Raises `Refused` if Redis cannot be reached."""
        mirror = self.mirrors.get(name)
        try:
            if mirror is None and await self._store.last(name) is None:
                return None
            mirror = self.mirrors.setdefault(name, mirror or Mirror(name, self._store))
            mirror.touched = time.monotonic()
            await self._listener.add(session_key(name), mirror.take)
            async with asyncio.timeout(deadlines.REDIS):
                await mirror.loaded.wait()
        except TROUBLE:
            raise Refused("capacity", ELSEWHERE) from None
        return None if mirror.gone else mirror

    async def offer(self) -> str:
        """Return what session replicas offer, as JSON.  Raises `Refused` if it is not known."""
        with suppress(*TROUBLE):
            if found := await self._store.offer():
                return found
        raise Refused("capacity", "this server only serves viewers, and has found no server that translates")

    def sweep(self) -> None:
        """Drop mirrors and rooms without viewers."""
        now = time.monotonic()
        for mirror in self.mirrors.values():
            mirror.touched = now if mirror.broadcast.audience else mirror.touched
        dropped = [each for each in self.mirrors.values() if each.gone or now - each.touched >= _IDLE]
        for mirror in dropped:
            del self.mirrors[mirror.name]
            self._rooms.forget(mirror)
        unused = {name for name in self._followed if not self._rooms.find(name).in_use}
        self._followed -= unused
        if channels := [session_key(each.name) for each in dropped] + list(map(room_key, unused)):
            self._soon(self._listener.remove(channels))
        if now - self._looked > _LOOK:
            self._looked = now
            self._soon(self._look())
            self._stale |= self._followed
        if self._stale:
            self._soon(self._refresh_stale())

    async def _look(self) -> None:
        """Store the offer again, and give up sessions whose replica has crashed, unless another one took them over."""
        await self._put_offer()
        with suppress(*TROUBLE):
            before, self._missing = self._missing, await self._store.missing(list(self.mirrors))
            for name in before & self._missing & self.mirrors.keys():
                self.mirrors[name].forget()

    # Rooms

    def left(self, session: LiveSession) -> None:
        """Let others have the room of a session that has lost its connection."""
        publisher = self._publishers.get(session)
        if publisher is not None and session.begin.room:
            self._soon(publisher.beat())

    async def follow_room(self, name: str) -> None:
        """Follow the sessions that start in a room on other replicas."""

        async def look(text: str | None) -> None:
            self._soon(self.refresh(name))

        self._followed.add(name)
        await self._listener.add(room_key(name), look)

    async def refresh(self, name: str) -> None:
        """Show a room's session if it is on another replica; if Redis does not answer, once it does."""
        try:
            session = await self.shared.session(name)
            shown = self._rooms.find(name).session
            if session is None or session in self._hub.sessions or (shown is not None and shown.name == session):
                return
            if shown is not None and shown.in_use and await self.shared.holder(name) == shown.name:
                return  # the session has only just started
            mirror = await self.find(session)
            # Meanwhile its owner may have come here.
            if mirror is not None and session not in self._hub.sessions and self._rooms.find(name).session is shown:
                self._rooms.show(name, mirror)
        except (Refused, *TROUBLE):
            if name in self._followed:
                self._stale.add(name)

    async def _refresh_stale(self) -> None:
        """Look up rooms, until Redis does not answer."""
        while self._stale:
            await self.refresh(name := self._stale.pop())
            if name in self._stale:
                return
