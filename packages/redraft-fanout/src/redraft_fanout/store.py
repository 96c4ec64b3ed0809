"""Data that replicas share in Redis.

    redraft:session:NAME        stream: the log of what a session's viewers may see; also the channel for new entries
    redraft:room:ROOM           name of the room's latest session; also the channel for changes
    redraft:room:ROOM:lease     name of the session that holds the room, while it is in use
    redraft:room:ROOM:owner     name of the API key that used the room first
    redraft:offer               what the session replicas offer, for replicas that serve viewers only

Every key expires.  The first entry of a log describes the session; a new first entry starts a new *epoch*, in which the
whole log is rewritten.  Positions increase across epochs while Redis keeps the log, and it rejects an entry whose
position is not the greatest: so a replica that has lost a session to another one is notified, and cannot add its
captions.  A session belongs to the replica to which its owner connected last, by the owner's own numbers: clocks of
different machines are never compared.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from socket import gaierror
from typing import Any, NamedTuple

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from redraft import deadlines, protocol
from redraft.errors import OptionError, Unavailable
from redraft.proxies import address_parts
from redraft.serve.sessions.rooms import busy_room, foreign_room
from redraft.serve.settings import ServeSettings

log = logging.getLogger(__name__)

#: Exceptions of an operation while Redis is unavailable.
TROUBLE = (RedisError, OSError)
#: Seconds for which an offer is stored.
_OFFERED = 30 * 86_400
#: Connections per replica, besides the one that listens.
_CONNECTIONS = 16
#: Announces that a session has been forgotten.
GONE = "gone"
#: Number of log entries read or written at a time.
_PIECE = 500
#: Seconds of a room's lease, and for which its owner is remembered.
_LEASE, _OWNED = 15, 30 * 86_400
#: The oldest version with all commands that are used: 6.2 has XTRIM MINID, and ranges that exclude their start.
_OLDEST = (6, 2)

_ADDRESS = "fanout must be an address such as redis://host:6379/0, or rediss://host:6379/0 with TLS"


def place_of(url: str) -> str:
    """Return the address of Redis without user and password.  Raises `OptionError` if the address is invalid."""
    parts = address_parts(url, "redis", "rediss")
    if parts is None or not re.fullmatch(r"/?\d*/?", parts.path):
        raise OptionError(_ADDRESS)
    return f"{parts.hostname}:{parts.port or 6379}"


class Outdated(Exception):
    """The log is not what this replica has written, which must begin a new epoch.

    Redis has lost it, or it has a later epoch: of the owner's new replica, or of one that was cut off from Redis.
    """


class RedisAway(Unavailable):
    """Redis cannot be reached; unlike a wrong setting, that may pass, so the server can be started again."""


def _is_away(error: BaseException) -> bool:
    """Whether nothing answers, rather than refuses."""
    causes = (error, error.__cause__, error.__context__)
    return any(isinstance(each, ConnectionRefusedError | TimeoutError | RedisTimeout | gaierror) for each in causes)


class Position(NamedTuple):
    """A position in the log of a session; later ones are greater.

    Attributes:
        epoch: increases whenever the log is rewritten.
        number: increases by one per entry within an epoch.
    """

    epoch: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse a position as written by Redis and in messages."""
        epoch, _, number = text.partition("-")
        return cls(int(epoch), int(number))

    @property
    def next(self) -> Position:
        """Return the next position."""
        return Position(self.epoch, self.number + 1)

    def __str__(self) -> str:
        """Return the position as text."""
        return f"{self.epoch}-{self.number}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An event of a session.

    Attributes:
        position: its position; for an event that is not stored, that of the last entry before it.
        message: the message to viewers; for the first entry of an epoch, the session's description.
        kept: whether it is stored in the log; partial captions are only published.
    """

    position: Position
    message: str
    kept: bool = True
    first: bool = False


def session_key(name: str) -> str:
    """Return the key of a session's log, and its channel."""
    return f"redraft:session:{name}"


def room_key(name: str) -> str:
    """Return the key of a room's session, and its channel."""
    return f"redraft:room:{name}"


def parse_news(text: str) -> Entry:
    """Parse a published event; an empty message announces the length of the log.  Raises `ValueError` if invalid."""
    position, _, message = text.partition(" ")
    return Entry(Position.parse(position), message)


class Store:
    """The shared data.  Every method that uses Redis raises an exception in `TROUBLE` if Redis is unavailable.

    Args:
        settings: include the address, and the password if it is not part of the address.
        replica: identifies this process among the replicas.

    Raises:
        OptionError: the address is invalid.
    """

    def __init__(self, settings: ServeSettings, replica: str = "") -> None:
        self._replica = replica
        url = settings.fanout or ""
        self.place = place_of(url)
        # An operation without a response may have been executed, so none is retried automatically.
        options: dict[str, Any] = {
            "decode_responses": True,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": deadlines.REDIS,
            "socket_connect_timeout": deadlines.REDIS,
            "max_connections": _CONNECTIONS,
            "timeout": deadlines.REDIS,
        }
        if settings.fanout_password is not None:
            options["password"] = settings.fanout_password
        try:
            self.redis = Redis(connection_pool=BlockingConnectionPool.from_url(url, **options))
        except ValueError:
            raise OptionError(_ADDRESS) from None
        self._failing = False
        #: Seconds after which Redis drops data that no replica renews.
        self.expire = int(max(60, settings.keep_seconds))

    async def check(self) -> None:
        """Check that Redis can be used, and close all connections.

        Raises:
            RedisAway: it cannot be reached, perhaps not yet.
            OptionError: it refuses, or is too old.
        """
        try:
            await self.redis.ping()
            version = await self._version()
        except TROUBLE as error:
            why = str(error).strip().rstrip(".").rpartition(". ")[2] or type(error).__name__
            if _is_away(error):
                raise RedisAway(f"Redis at {self.place} cannot be reached: {why}") from None
            raise OptionError(f": Redis at {self.place} cannot be used: {why}", "fanout") from None
        finally:
            await self.close()
        if version and tuple(map(int, version.split(".")[:2])) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            raise OptionError(f": Redis at {self.place} must have version {oldest} or later, not {version}", "fanout")

    async def _version(self) -> str:
        """Return the version of Redis; empty if its operator does not tell."""
        with suppress(ResponseError):
            return str((await self.redis.info("server")).get("redis_version", ""))
        return ""

    def failed(self, error: BaseException) -> None:
        """Log that Redis is unavailable, once per outage."""
        if not self._failing:
            why = str(error) if isinstance(error, ResponseError) else type(error).__name__  # others have addresses
            log.warning("Redis is unavailable, so viewers on other servers wait: %s", why)
        self._failing = True

    def worked(self) -> None:
        """Log that Redis is available again."""
        if self._failing:
            log.info("Redis can be used again")
        self._failing = False

    async def close(self) -> None:
        """Close all connections."""
        await self.redis.aclose(close_connection_pool=True)

    # Logs of sessions

    async def begin(self, name: str, about: str, connection: int) -> Position | None:
        """Start an epoch of a session's log, by the clock of Redis.

        Args:
            connection: number of the latest connection to the session that this replica knows.

        Returns:
            The position; None if the session's client has connected to another replica since then.

        Raises:
            Outdated: another replica has started one at the same time.
        """
        seconds, microseconds = await self.redis.time()
        last = await self.last(name)
        if last is not None and await self._is_elsewhere(name, last.epoch, connection):
            return None
        epoch = max(1000 * seconds + microseconds // 1000, 0 if last is None else last.epoch + 1)
        key, first = session_key(name), Position(epoch, 0)
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.xadd(key, {"about": about, "connection": connection, "replica": self._replica}, id=str(first))
            pipe.expire(key, self.expire)
            answer, _ = await pipe.execute(raise_on_error=False)
        _check(answer)
        return first

    async def moved(self, name: str, connection: int) -> bool:
        """Whether a session's client has connected to another replica since the connection with this number."""
        last = await self.last(name)
        return last is not None and await self._is_elsewhere(name, last.epoch, connection)

    async def _is_elsewhere(self, name: str, epoch: int, connection: int) -> bool:
        """Whether an epoch is of another replica, to which the client has connected since; see `moved`.

        It must be the newest one: until that is written, the log also has the one before, of the replica that lost.
        """
        if not (first := await self.redis.xrange(session_key(name), min=str(epoch), count=1)):  # forgotten meanwhile
            return False
        fields = first[0][1]
        latest, replica = int(fields["connection"]), fields["replica"]
        return latest > connection or (latest == connection and replica != self._replica)

    async def append(self, name: str, entries: Sequence[Entry], *, publish: bool = True) -> None:
        """Append events of a session.

        Args:
            publish: whether to publish each of them immediately.

        Raises:
            Outdated: nothing was appended.
        """
        key = session_key(name)
        for start in range(0, len(entries), _PIECE):
            async with self.redis.pipeline(transaction=False) as pipe:
                for entry in entries[start : start + _PIECE]:
                    if entry.kept:
                        # Only `begin` creates a log: nobody could use one without its start.
                        pipe.xadd(key, {"message": entry.message}, id=str(entry.position), nomkstream=True)
                    if publish:
                        pipe.publish(key, f"{entry.position} {entry.message}")
                for answer in await pipe.execute(raise_on_error=False):
                    _check(answer)

    async def conclude(self, name: str, first: Position, last: Position) -> None:
        """Drop earlier epochs of a rewritten log, and announce its length."""
        key = session_key(name)
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.xtrim(key, minid=str(first), approximate=False)
            pipe.publish(key, f"{last} ")
            await pipe.execute()

    async def keep(self, name: str, position: Position) -> None:
        """Renew the expiry of a session's log.

        Raises:
            Outdated: its last position is another one.
        """
        key = session_key(name)
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.expire(key, self.expire)
            pipe.xrevrange(key, count=1)
            _, last = await pipe.execute()
        if not last or Position.parse(last[0][0]) != position:
            raise Outdated

    async def last(self, name: str) -> Position | None:
        """Return the position of a log's last entry; None if there is no log."""
        found = await self.redis.xrevrange(session_key(name), count=1)
        return Position.parse(found[0][0]) if found else None

    async def read(self, name: str, after: Position) -> list[Entry]:
        """Return the next entries of a log after a position; empty if there are no more."""
        found = await self.redis.xrange(session_key(name), min=f"({after}", count=_PIECE)
        return [
            Entry(Position.parse(position), fields.get("about") or fields.get("message", ""), first="about" in fields)
            for position, fields in found
        ]

    async def forget(self, name: str, position: Position) -> None:
        """Delete the log of a session, unless another replica has taken it over, and announce that."""
        if await self.last(name) == position:
            await self.redis.delete(session_key(name))
            await self.redis.publish(session_key(name), f"{position.next} {GONE}")

    async def missing(self, names: Sequence[str]) -> set[str]:
        """Return which of these sessions have no log."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.exists(session_key(name))
            return {name for name, there in zip(names, await pipe.execute(), strict=True) if not there}

    # Offers

    async def put_offer(self, offer: str) -> None:
        """Store what session replicas offer."""
        await self.redis.set("redraft:offer", offer, ex=_OFFERED)

    async def offer(self) -> str | None:
        """Return what session replicas offer; None if no replica has published it."""
        found: str | None = await self.redis.get("redraft:offer")
        return found


def _check(answer: object) -> None:
    """Raise the error with which a pipeline's operation was answered, if any; None is the answer if there is no log."""
    if answer is None or (isinstance(answer, ResponseError) and "equal or smaller" in str(answer)):
        raise Outdated
    if isinstance(answer, Exception):
        raise answer


class SharedRooms:
    """The rooms of all replicas; with ``owned``, a room belongs to the API key that used it first."""

    def __init__(self, store: Store, *, owned: bool) -> None:
        self._store, self._owned = store, owned
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
        try:
            await self._lease(begin.room, name, owner if self._owned else None, take_over=begin.take_over)
        except TROUBLE as error:  # without Redis, each replica knows only its own sessions
            self._store.failed(error)
        try:
            yield
        except BaseException:
            with suppress(*TROUBLE):
                if await self.holder(begin.room) == name:
                    await self._redis.delete(f"{room_key(begin.room)}:lease")
            raise

    async def _lease(self, room: str, session: str, owner: str | None, *, take_over: bool) -> None:
        """Lease a room for a new session, waiting a moment for one that is just leaving it; raises `Refused`.

        Args:
            owner: name of the API key, which then owns the room if no other one does; None if rooms have no owners.
        """
        key, until = room_key(room), time.monotonic() + deadlines.LEAVING
        if owner is not None and await self._claimed(f"{key}:owner", owner, _OWNED) != owner:
            raise foreign_room(room)
        lease = f"{key}:lease"
        while await self._claimed(lease, session, _LEASE) != session:
            if take_over:
                await self._redis.set(lease, session, ex=_LEASE)
                return
            if time.monotonic() > until:
                raise busy_room(room)
            await asyncio.sleep(deadlines.LEAVING / 10)

    async def _claimed(self, key: str, value: str, seconds: int) -> str:
        """Set a key unless it exists, and return its value; Redis takes NX and GET in one command only since 7."""
        while not await self._redis.set(key, value, nx=True, ex=seconds):
            found: str | None = await self._redis.get(key)
            if found is not None:  # else it has just expired
                return found
        return value

    async def keep(self, room: str, session: str, in_use: Callable[[], bool]) -> None:
        """Renew a room's session, and its lease while that is in use."""
        key = room_key(room)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.set(key, session, nx=True, ex=self._expire)  # another session may have started there a moment ago
            pipe.expire(key, self._expire)
            pipe.expire(f"{key}:owner", _OWNED)
            pipe.get(f"{key}:lease")
            holder = (await pipe.execute())[-1]
        if in_use() and holder in (None, session):  # asked late, since its owner may have left meanwhile
            await self._redis.set(f"{key}:lease", session, ex=_LEASE)
        elif holder == session:
            await self._redis.delete(f"{key}:lease")

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
