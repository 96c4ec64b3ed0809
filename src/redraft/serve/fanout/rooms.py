"""The session in each room, on any replica."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from redraft.serve import protocol
from redraft.serve.fanout.store import TROUBLE, Store, room_key
from redraft.serve.refusals import Refused

#: Seconds of a room's lease, and for which its owner is remembered.
_LEASE, _OWNED = 15, 30 * 86_400
#: Seconds to wait for a session to leave its room.
_LEAVING = 0.5


class SharedRooms:
    """The rooms of all replicas.

    Args:
        store: where they are stored.
        owned: whether a room belongs to the API key that used it first.
    """

    def __init__(self, store: Store, *, owned: bool) -> None:
        self._owned = owned
        self._redis, self._expire = store.redis, store.expire

    @asynccontextmanager
    async def taken(self, begin: protocol.Begin, name: str, owner: str) -> AsyncIterator[None]:
        """Reserve a room on all replicas for a session that starts in the block.

        Raises:
            Refused: another replica has a session in the room, or another API key owns it.
        """
        if begin.room is None:
            yield
            return
        with suppress(*TROUBLE):  # without Redis, each replica knows only its own sessions
            of = owner if self._owned else None
            owns, holds = await self._take(begin, name, of)
            if of is not None and owns != of:
                raise Refused("room", f"room {begin.room!r} may not be used with this API key")
            if holds != name:
                raise Refused(
                    "room",
                    f"room {begin.room!r} is in use: end its session, or begin this one with take_over to end it",
                )
        try:
            yield
        except BaseException:
            with suppress(*TROUBLE):
                await self._release(begin.room, name)
            raise

    async def _take(self, begin: protocol.Begin, name: str, owner: str | None) -> tuple[str, str]:
        """Call `take`, and wait a moment for a session that is just leaving the room."""
        until = time.monotonic() + _LEAVING
        while True:
            found = await self.take(begin.room or "", name, owner, take_over=begin.take_over)
            if found[1] == name or time.monotonic() > until:
                return found
            await asyncio.sleep(_LEAVING / 10)

    async def take(self, room: str, session: str, owner: str | None, *, take_over: bool) -> tuple[str, str]:
        """Lease a room for a new session.

        Args:
            room: name of the room.
            session: name of the session.
            owner: name of the API key, which then owns the room if no other one does; None if rooms have no owners.
            take_over: whether to take it from another session.

        Returns:
            The room's owner and the session that holds it; others than the arguments if the room is taken.
        """
        key = room_key(room)
        if owner is not None:
            known = await self._redis.set(f"{key}:owner", owner, nx=True, get=True, ex=_OWNED)
            if known not in (None, owner):
                return str(known), session
        holder = await self._redis.set(f"{key}:lease", session, nx=True, get=True, ex=_LEASE) or session
        if take_over and holder != session:
            await self._redis.set(f"{key}:lease", session, ex=_LEASE)
            holder = session
        return owner or "", holder

    async def keep(self, room: str, session: str, *, in_use: bool) -> None:
        """Renew a room's session, and its lease while it is in use."""
        key = room_key(room)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.set(key, session, nx=True, ex=self._expire)  # another session may have started there a moment ago
            pipe.expire(key, self._expire)
            pipe.expire(f"{key}:owner", _OWNED)
            pipe.get(f"{key}:lease")
            holder = (await pipe.execute())[-1]
        if in_use and holder in (None, session):
            await self._redis.set(f"{key}:lease", session, ex=_LEASE)
        elif holder == session:
            await self._redis.delete(f"{key}:lease")

    async def _release(self, room: str, session: str) -> None:
        if await self.holder(room) == session:
            await self._redis.delete(f"{room_key(room)}:lease")

    async def show(self, room: str, session: str) -> None:
        """Make a session the latest one of a room."""
        key = room_key(room)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.set(key, session, ex=self._expire)
            pipe.publish(key, session)
            await pipe.execute()

    async def session(self, room: str) -> str | None:
        """Return the latest session of a room."""
        found: str | None = await self._redis.get(room_key(room))
        return found

    async def holder(self, room: str) -> str | None:
        """Return the session that holds a room while it is in use."""
        found: str | None = await self._redis.get(f"{room_key(room)}:lease")
        return found

    async def leave(self, room: str, session: str) -> None:
        """Remove a forgotten session from its room."""
        if await self.session(room) == session:
            await self._redis.delete(room_key(room))
