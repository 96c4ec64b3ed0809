"""A replica's part in the fan-out: its own sessions are published, those of others can be watched here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from redraft.serve import protocol
from redraft.serve.admission import DRAINING
from redraft.serve.bodies import Offer
from redraft.serve.fanout.feed import Publisher
from redraft.serve.fanout.listener import Listener
from redraft.serve.fanout.mirror import Mirror
from redraft.serve.fanout.rooms import SharedRooms
from redraft.serve.fanout.store import TROUBLE, Store, room_key, session_key
from redraft.serve.live import LiveSession
from redraft.serve.refusals import Refused
from redraft.serve.rooms import Rooms
from redraft.serve.settings import ServeSettings

log = logging.getLogger(__name__)

#: Seconds for which a mirror is kept that nobody watches, between two looks at whether logs are still there, in which
#: a log must have been read, and in which everything must be written at the end.
_IDLE, _LOOK, _READ, _LAST_WORDS = 10.0, 15.0, 5.0, 2.0
#: Looks at a log that is missing, after which its session is given up: Redis may have been started again.
_MOST_MISSING = 2
ELSEWHERE = "captions of sessions on other replicas cannot be had at the moment: try again"


class Fanout:
    """The fan-out of one replica.  Everything here runs on the server's event loop.

    Args:
        settings: with the address of Redis.
        sessions: those of this replica, by name.
        rooms: of this replica.
        offer: what this replica offers; not asked if it serves viewers only.
        lost: called when another replica has taken over a session.

    Raises:
        MissingExtra: the package for Redis is not installed.
        OptionError: the address is invalid.
    """

    def __init__(
        self,
        settings: ServeSettings,
        sessions: Mapping[str, LiveSession],
        rooms: Rooms,
        offer: Callable[[], Offer],
        lost: Callable[[LiveSession], None],
    ) -> None:
        self._settings, self._sessions, self._rooms = settings, sessions, rooms
        self._offer, self._lost_to = offer, lost
        self._store = Store(settings)
        #: Which session each room has.
        self.shared = SharedRooms(self._store, owned=not settings.rooms)
        self._listener = Listener(self._store)
        self._publishers: dict[LiveSession, Publisher] = {}
        self.mirrors: dict[str, Mirror] = {}
        self._missing: dict[str, int] = {}
        self._followed: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._looked = time.monotonic()

    def start(self) -> None:
        """Begin to listen."""
        self._soon(self._listener.run())
        self._soon(self._put_offer())

    async def stop(self) -> None:
        """Let everything be written, then close all connections to Redis."""
        until = time.monotonic() + _LAST_WORDS
        while time.monotonic() < until and not all(each.quiet for each in self._publishers.values()):
            await asyncio.sleep(0.02)
        tasks = [*self._tasks, *(each.task for each in self._publishers.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(*TROUBLE):
            await self._store.close()

    def drain(self) -> None:
        """Close the connections of viewers of other replicas' sessions."""
        error = protocol.Error(code="draining", message=DRAINING, fatal=True)
        for mirror in self.mirrors.values():
            mirror.delivery.close(1012, DRAINING, error)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def viewers(self) -> int:
        """How many are connected here to sessions of other replicas."""
        return sum(len(each.delivery.viewers) + each.readers for each in self.mirrors.values())

    # Sessions of this replica

    def publish(self, session: LiveSession) -> None:
        """Let other replicas know of a session, and of whatever comes of it."""
        most = self._settings.waiting_messages
        self._publishers[session] = Publisher(session, self._store, most, self._alive, self._lost)

    def forget(self, session: LiveSession) -> None:
        """A session is kept no longer."""
        publisher = self._publishers.pop(session, None)
        if publisher is None:
            return
        publisher.forget()
        if room := session.begin.room:
            self._soon(self._leave(room, session.name, publisher))

    def drop(self, session: LiveSession) -> None:
        """Another replica has taken over a session: it is not published from here any more."""
        publisher = self._publishers.pop(session, None)
        if publisher is not None:
            publisher.task.cancel()

    async def _leave(self, room: str, session: str, publisher: Publisher) -> None:
        await asyncio.wait([publisher.task], timeout=_LAST_WORDS)
        with suppress(*TROUBLE):
            if publisher.forgotten:
                await self.shared.leave(room, session)
        await self._refresh(room)

    async def moved(self, session: LiveSession) -> bool:
        """Whether another replica has taken over a session; no, while that cannot be found out."""
        publisher = self._publishers.get(session)
        with suppress(*TROUBLE):
            last = await self._store.last(session.name)
            return publisher is not None and last is not None and last.epoch > publisher.position.epoch > 0
        return False

    async def _alive(self, session: LiveSession, first: bool) -> None:
        """Keep what Redis has of a session's room."""
        room = session.begin.room
        if first:
            await self._put_offer()
        if room and self._rooms.find(room).session is session:
            if first:
                await self.shared.show(room, session.name)
                await self.follow_room(room)
            await self.shared.keep(room, session.name, in_use=session.in_use)

    def _lost(self, session: LiveSession) -> None:
        self._publishers.pop(session, None)
        self._lost_to(session)
        if session.begin.room:
            self._soon(self._refresh(session.begin.room))

    async def _put_offer(self) -> None:
        if not self._settings.viewers_only:
            with suppress(*TROUBLE):
                await self._store.put_offer(self._offer().wire())

    # Sessions of other replicas

    async def find(self, name: str) -> Mirror | None:
        """A session of another replica; None if there is none.

        Raises:
            Refused: this cannot be found out at the moment.
        """
        mirror = self.mirrors.get(name)
        try:
            if mirror is None and await self._store.last(name) is None:
                return None
            mirror = self.mirrors.setdefault(name, mirror or Mirror(name, self._store))
            mirror.touched = time.monotonic()
            if session_key(name) not in self._listener:
                await self._listener.add(session_key(name), mirror)
            async with asyncio.timeout(_READ):
                await mirror.loaded.wait()
        except TROUBLE:
            raise Refused("capacity", ELSEWHERE) from None
        return None if mirror.gone else mirror

    async def offer(self) -> str:
        """What session replicas offer, as JSON.

        Raises:
            Refused: none has said so yet, or this cannot be found out at the moment.
        """
        with suppress(*TROUBLE):
            if found := await self._store.offer():
                return found
        raise Refused("capacity", "this server only serves viewers, and knows of no server that translates")

    def sweep(self) -> None:
        """Forget mirrors and rooms that nobody watches."""
        now = time.monotonic()
        dropped = [
            each for each in self.mirrors.values() if each.gone or not (each.watched or now - each.touched < _IDLE)
        ]
        for mirror in dropped:
            del self.mirrors[mirror.name]
            self._rooms.forget(mirror)
        unused = {name for name in self._followed if not self._rooms.find(name).in_use}
        self._followed -= unused
        if channels := [session_key(each.name) for each in dropped] + list(map(room_key, unused)):
            self._soon(self._listener.remove(channels))
        if now - self._looked > _LOOK and self.mirrors:
            self._looked = now
            self._soon(self._look())

    async def _look(self) -> None:
        """Give sessions up whose replica has died, and that no other one has taken over."""
        with suppress(*TROUBLE):
            missing = await self._store.missing(list(self.mirrors))
            self._missing = {name: self._missing.get(name, 0) + 1 for name in missing}
            for name in missing & self.mirrors.keys():
                if self._missing[name] >= _MOST_MISSING:
                    self.mirrors[name].forget()

    # Rooms

    def left(self, session: LiveSession) -> None:
        """A session has lost its connection, so that its room may be had by others."""
        publisher = self._publishers.get(session)
        if publisher is not None and session.begin.room:
            self._soon(publisher.beat())

    async def enter_room(self, name: str) -> None:
        """Find out which session a room has, before a viewer is let in."""
        with suppress(Refused):
            await self._refresh(name)

    async def follow_room(self, name: str) -> None:
        """Hear of the sessions that begin in a room on other replicas."""
        self._followed.add(name)
        if room_key(name) not in self._listener:
            await self._listener.add(room_key(name), _RoomTopic(lambda: self._soon(self._refresh(name))))

    async def _refresh(self, name: str) -> None:
        """Show the session that a room has, if that is on another replica."""
        with suppress(Refused, *TROUBLE):
            session = await self.shared.session(name)
            shown = self._rooms.find(name).session
            if session is None or session in self._sessions or (shown is not None and shown.name == session):
                return
            if shown is not None and shown.in_use and await self.shared.holder(name) == shown.name:
                return  # it has only just begun
            mirror = await self.find(session)
            if mirror is not None:
                self._rooms.show(name, mirror)


class _RoomTopic:
    """Looks at a room again whenever anything is heard of it."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    async def catch_up(self) -> None:
        """As of `Topic`."""
        self._look()

    async def heard(self, text: str) -> None:
        """As of `Topic`."""
        self._look()
