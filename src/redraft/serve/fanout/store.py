"""What replicas share in Redis, and under which names.

    redraft:session:NAME        stream: the log of a session, what its viewers may see; also the channel for news of it
    redraft:room:ROOM           name of the room's latest session; also the channel for changes
    redraft:room:ROOM:lease     name of the session that holds the room, while it is in use
    redraft:room:ROOM:owner     name of the API key that used the room first
    redraft:offer               what the session replicas offer, for replicas that serve viewers only

Every key expires.  The first entry of a log says what the session is; a new first entry begins a new *epoch*, in which
the whole log is written again.  Positions grow across epochs, and Redis refuses an entry whose position is not the
greatest: a replica that has lost a session to another one is told so, and cannot mix its captions in.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from redraft.errors import MissingExtra, OptionError
from redraft.serve.settings import ServeSettings

try:
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError, ResponseError
except ModuleNotFoundError as error:
    raise MissingExtra("fanout needs redis, which is not installed: pip install 'redraft[fanout]'") from error

log = logging.getLogger(__name__)

#: What an operation raises while Redis cannot be used.
TROUBLE = (RedisError, OSError)
#: Seconds that an answer may take, and for which an offer is kept.
_ANSWER, _OFFERED = 5.0, 30 * 86_400
#: Connections of a replica, beside the one that listens.
_CONNECTIONS = 16
#: In news of a session: it is kept no longer.
GONE = "gone"
#: Entries of a log that are read or written at a time.
_PIECE = 500


class Superseded(Exception):
    """Another replica has taken over the session."""


class Position(NamedTuple):
    """A place in the log of a session; later ones are greater.

    Attributes:
        epoch: grows whenever the log is written from its beginning.
        number: grows by one from entry to entry within an epoch.
    """

    epoch: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position as Redis and news write it."""
        epoch, _, number = text.partition("-")
        return cls(int(epoch), int(number))

    @property
    def next(self) -> Position:
        """The one after it."""
        return Position(self.epoch, self.number + 1)

    def __str__(self) -> str:
        """The same in text."""
        return f"{self.epoch}-{self.number}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An event of a session.

    Attributes:
        position: its own; of an event that is not kept, that of the last entry before it.
        message: as viewers are sent it; of the first entry of an epoch, what the session is.
        kept: whether it goes into the log; partial captions only go by.
        first: whether it begins an epoch.
    """

    position: Position
    message: str
    kept: bool = True
    first: bool = False


def session_key(name: str) -> str:
    """The key of a session's log, and its channel."""
    return f"redraft:session:{name}"


def room_key(name: str) -> str:
    """The key of a room's session, and its channel."""
    return f"redraft:room:{name}"


def parse_news(text: str) -> Entry:
    """The event that a channel tells of; its message is empty where it only says how long the log is.

    Raises:
        ValueError: the text is something else.
    """
    position, _, message = text.partition(" ")
    return Entry(Position.parse(position), message)


class Store:
    """What replicas share.  Every method that asks Redis raises what is in `TROUBLE` while that cannot be used.

    Args:
        settings: with the address, and the password if it is not part of that.

    Raises:
        OptionError: the address is invalid.
    """

    def __init__(self, settings: ServeSettings) -> None:
        url = settings.fanout or ""
        self.place = _place(url)
        # An operation that got no answer may have been done all the same, so none is repeated blindly.
        options: dict[str, Any] = {
            "decode_responses": True,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": _ANSWER,
            "socket_connect_timeout": _ANSWER,
            "max_connections": _CONNECTIONS,
            "timeout": _ANSWER,
        }
        if settings.fanout_password is not None:
            options["password"] = settings.fanout_password
        try:
            self.redis = Redis(connection_pool=BlockingConnectionPool.from_url(url, **options))
        except ValueError:
            raise _bad_address() from None
        self._failing = False
        #: Seconds after which Redis forgets what no replica keeps.
        self.expire = int(max(60, settings.keep_seconds))

    async def check(self) -> None:
        """Whether Redis can be used.

        Raises:
            OptionError: it cannot.
        """
        try:
            await self.redis.ping()
        except TROUBLE as error:
            why = str(error).strip().rstrip(".").rpartition(". ")[2] or type(error).__name__
            raise OptionError(f"fanout: Redis at {self.place} cannot be used: {why}") from None

    def failed(self, error: BaseException) -> None:
        """Log that Redis cannot be used, once until it can be again."""
        if not self._failing:
            log.warning("Redis cannot be used, so viewers on other servers have to wait: %s", type(error).__name__)
        self._failing = True

    def worked(self) -> None:
        """Log that it can be used again."""
        if self._failing:
            log.info("Redis can be used again")
        self._failing = False

    async def close(self) -> None:
        """Close all connections."""
        await self.redis.aclose(close_connection_pool=True)

    # Logs of sessions

    async def begin(self, name: str, about: str) -> Position:
        """Begin an epoch of a session's log; its position is Redis's to choose."""
        key = session_key(name)
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.xadd(key, {"about": about})
            pipe.expire(key, self.expire)
            found, _ = await pipe.execute()
        return Position.parse(found)

    async def append(self, name: str, entries: Sequence[Entry], *, tell: bool = True) -> None:
        """Write events of a session.

        Args:
            name: of the session.
            entries: in their order.
            tell: whether to publish each of them at once.

        Raises:
            Superseded: another replica has begun a later epoch.
        """
        key = session_key(name)
        for start in range(0, len(entries), _PIECE):
            async with self.redis.pipeline(transaction=False) as pipe:
                for entry in entries[start : start + _PIECE]:
                    if entry.kept:
                        pipe.xadd(key, {"message": entry.message}, id=str(entry.position))
                    if tell:
                        pipe.publish(key, f"{entry.position} {entry.message}")
                for answer in await pipe.execute(raise_on_error=False):
                    _check(answer)

    async def conclude(self, name: str, first: Position, last: Position) -> None:
        """Drop earlier epochs of a log that has been written again, and tell everybody how long it is."""
        key = session_key(name)
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.xtrim(key, minid=str(first), approximate=False)
            pipe.publish(key, f"{last} ")
            await pipe.execute()

    async def keep(self, name: str, position: Position) -> bool:
        """Keep the log of a session from expiring; whether it is as long as it ought to be.

        Raises:
            Superseded: another replica has begun a later epoch.
        """
        key = session_key(name)
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.expire(key, self.expire)
            pipe.xrevrange(key, count=1)
            _, last = await pipe.execute()
        if not last:
            return False
        found = Position.parse(last[0][0])
        if found > position:
            raise Superseded
        return found == position

    async def last(self, name: str) -> Position | None:
        """The position of a log's last entry; None if there is no log."""
        found = await self.redis.xrevrange(session_key(name), count=1)
        return Position.parse(found[0][0]) if found else None

    async def read(self, name: str, after: Position) -> list[Entry]:
        """The next entries of a log after a position; none if there are no more."""
        found = await self.redis.xrange(session_key(name), min=f"({after}", count=_PIECE)
        return [
            Entry(Position.parse(position), fields.get("about") or fields.get("message", ""), first="about" in fields)
            for position, fields in found
        ]

    async def forget(self, name: str, position: Position) -> None:
        """Drop the log of a session, unless another replica has taken it over, and say so."""
        if await self.last(name) == position:
            await self.redis.delete(session_key(name))
            await self.redis.publish(session_key(name), f"{position.next} {GONE}")

    async def missing(self, names: Sequence[str]) -> set[str]:
        """Which of these sessions have no log."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.exists(session_key(name))
            return {name for name, there in zip(names, await pipe.execute(), strict=True) if not there}

    # What may be asked for

    async def put_offer(self, offer: str) -> None:
        """Keep what session replicas offer."""
        await self.redis.set("redraft:offer", offer, ex=_OFFERED)

    async def offer(self) -> str | None:
        """What session replicas offer; None if none has been there."""
        found: str | None = await self.redis.get("redraft:offer")
        return found


def _check(answer: object) -> None:
    """Raise what an operation of a pipeline was answered with, if that is an error."""
    if isinstance(answer, ResponseError) and "equal or smaller" in str(answer):
        raise Superseded
    if isinstance(answer, Exception):
        raise answer


def _place(url: str) -> str:
    """Where Redis is, without user and password.

    Raises:
        OptionError: the address is invalid.
    """
    try:
        parts = urlsplit(url)
        number = parts.path.strip("/")
        if parts.scheme not in ("redis", "rediss") or not parts.hostname or not (number.isdigit() or not number):
            raise _bad_address()
        return f"{parts.hostname}:{parts.port or 6379}"
    except ValueError:
        raise _bad_address() from None


def _bad_address() -> OptionError:
    return OptionError("fanout must be an address such as redis://host:6379/0, or rediss://host:6379/0 with TLS")
