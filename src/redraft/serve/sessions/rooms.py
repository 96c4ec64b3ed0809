"""Rooms, whose names stay the same from session to session, and sessions that are over.

A room has one session at a time.  Its viewers are connected to the room: they may connect before a session starts, and
stay for the next one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from redraft import protocol
from redraft.errors import OptionError
from redraft.protocol import ROOM_NAME, ROOM_RULE
from redraft.protocol.codes import Refused
from redraft.serve.access import ApiKeys
from redraft.serve.sessions.broadcast import Broadcast, Outbox
from redraft.serve.sessions.transcript import Transcript

#: Maximum number of sessions, and of characters of all their captions, that are kept.
MOST, MOST_CHARACTERS = 1000, 100_000_000


class Session(Protocol):
    """A session of this server, or of another one; see `redraft.serve.sessions.live.LiveSession`."""

    name: str
    begin: protocol.Begin
    broadcast: Broadcast
    transcript: Transcript
    over: Callable[[], None] | None

    @property
    def ended(self) -> bool:
        """Whether it takes no more updates."""

    @property
    def done(self) -> bool:
        """Whether it has ended and everything is translated."""

    @property
    def in_use(self) -> bool:
        """Whether it keeps its room from others."""

    def end(self) -> None:
        """End it, unless it is another server's."""


class PastSessions:
    """Sessions that are over, kept for ``seconds``; beyond `MOST` and `MOST_CHARACTERS` the oldest go.

    Their viewers get their captions, then `Done`.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        #: By name, with when each is dropped.
        self._past: dict[str, tuple[Session, float]] = {}

    def keep(self, session: Session) -> None:
        """Keep a session that is forgotten, if it has captions."""
        self.drop(session.name)
        session.transcript.partials.clear()
        session.broadcast.end(1000, "the session is over", protocol.Done())
        if self._seconds and any(session.transcript.kept):
            self._past[session.name] = session, self._clock() + self._seconds
        self.sweep()

    def drop(self, name: str) -> None:
        """Drop a session, which may have started again."""
        self._past.pop(name, None)

    def find(self, name: str) -> Session | None:
        """Return a past session by its public name."""
        return self._past[name][0] if name in self._past else None

    def in_room(self, room: str) -> Session | None:
        """Return the latest past session of a room."""
        return next((each for each, _ in reversed(self._past.values()) if each.begin.room == room), None)

    def sweep(self) -> None:
        """Drop what has been kept long enough, or is too much."""
        now, size = self._clock(), sum(past.transcript.size for past, _ in self._past.values())
        for past, until in list(self._past.values()):  # the oldest first
            if until > now and len(self._past) <= MOST and size <= MOST_CHARACTERS:
                return
            self.drop(past.name)
            size -= past.transcript.size


#: Maximum number of rooms whose owners are remembered.
_MOST_ROOMS = 10_000
#: Maximum number of rooms without a session for which viewers of one address, perhaps a proxy's, wait.
_MOST_OPENED = 500


def check_rooms(rooms: Mapping[str, tuple[str, ...]], keys: ApiKeys | None) -> None:
    """Raise `OptionError` if the name of a room in the settings is invalid, or its key does not exist."""
    for room, names in rooms.items():
        if not re.fullmatch(ROOM_NAME, room):
            raise OptionError(f"setting rooms: the name of a room must be {ROOM_RULE}, not {room!r}")
        for name in names:
            if keys is None:
                raise OptionError(f"setting rooms: room {room!r} names key {name!r}, but the setting keys is missing")
            if name not in keys:
                raise OptionError(f"setting rooms: room {room!r} names key {name!r}, which is not in the file of keys")


def busy_room(room: str) -> Refused:
    """Return the refusal of a session in a room that another one uses."""
    return Refused("room", f"room {room!r} is in use: end its session first, or take it over", "take_over")


def foreign_room(room: str) -> Refused:
    """Return the refusal of a session in a room that belongs to another key."""
    return Refused("room", f"room {room!r} may not be used with this API key", "room")


@dataclass(slots=True, eq=False)
class Room:
    """A room with its session and viewers.

    Attributes:
        owner: name of the API key that used it first; None before that, empty if no keys are needed.
        past: returns its latest past session, if that is still kept.
        session: the latest session that has not been forgotten.
        coming: whether a session is about to start in it.
        viewers: connections that stay from session to session.
        opened_by: address of the first viewer of a room without a session.
    """

    name: str
    past: Callable[[], Session | None]
    owner: str | None = None
    session: Session | None = None
    coming: bool = False
    viewers: set[Outbox] = field(default_factory=set)
    opened_by: str = ""

    @property
    def in_use(self) -> bool:
        """Whether it has viewers or a session, or a session is about to start."""
        return bool(self.viewers) or self.session is not None or self.coming

    @property
    def latest(self) -> Session | None:
        """Its session, which may be over."""
        return self.session or self.past()

    def message(self) -> protocol.RoomState:
        """Return its state as a message."""
        session = self.latest
        if session is None:
            return protocol.RoomState(room=self.name, state="waiting")
        state: Literal["over", "live"] = "over" if session.done else "live"
        return protocol.RoomState(
            room=self.name,
            state=state,
            session=session.name,
            source_language=session.transcript.source,
            targets=session.transcript.targets,
        )

    def begin(self, session: Session) -> None:
        """Show a session; the previous one is ended if it is still running."""
        latest, earlier, self.session = self.latest, self.session, session
        if latest is not None:
            latest.broadcast.viewers -= self.viewers
            if earlier is not None and not earlier.ended:
                earlier.broadcast.replaced(f"another session has taken over room {self.name!r}")
                earlier.end()
        session.over = partial(self._over, session)
        for viewer in self.viewers:
            viewer.put(self.message().frame)
            session.broadcast.watch(viewer)

    def _over(self, session: Session) -> None:
        if self.session is session:
            for viewer in self.viewers:
                viewer.put(self.message().frame)


class Rooms:
    """The rooms of a server.

    Args:
        assigned: the available rooms, with the names of the API keys that may use each (all if empty).  If it is empty,
            any name is available and belongs to the key that used it first.
        waited: maximum number of rooms without a session that have viewers.
        past: returns the latest past session of a room, if that is still kept.
    """

    def __init__(
        self,
        assigned: Mapping[str, tuple[str, ...]],
        waited: int,
        past: Callable[[str], Session | None] = lambda room: None,
    ) -> None:
        self._assigned, self._waited, self._past = assigned, waited, past
        self._rooms: dict[str, Room] = {}
        self._closing: tuple[int, str] | None = None

    @contextmanager
    def taken(self, name: str, owner: str, *, take_over: bool) -> Iterator[Room]:
        """Reserve a room for a session that starts in the block.  Raises `Refused` if it cannot have it."""
        room = self.find(name)
        keys = self._assigned.get(name, ())
        if (keys and owner not in keys) or (not self._assigned and room.owner not in (None, owner)):
            raise foreign_room(name)
        if room.coming:
            # A client that lost its connection while it began comes back, so this is not for good.
            raise Refused("capacity", f"a session is about to begin in room {name!r}: try again in a moment", "room")
        if room.session is not None and room.session.in_use and not take_over:
            raise busy_room(name)
        self._rooms[name], room.coming = room, True
        try:
            yield room
            room.owner = owner
        finally:
            room.coming = False
            self._tidy(room)

    def enter(self, name: str, viewer: Outbox, most: int, address: str = "") -> Room:
        """Admit a viewer to a room, even without a session.  Raises `Refused` if it does not exist or is full."""
        room = self.find(name)
        if len(room.viewers) >= most:
            raise Refused("limit", f"all {most} places for viewers of this room are taken (setting viewers)")
        if room.session is None and not room.viewers:
            waiting = [each for each in self._rooms.values() if each.session is None and each.viewers]
            if len(waiting) >= self._waited or sum(each.opened_by == address for each in waiting) >= _MOST_OPENED:
                raise Refused("capacity", "viewers are already waiting for too many rooms: try again later")
            room.opened_by = address
        room.viewers.add(viewer)
        viewer.put(room.message().frame)
        if (latest := room.latest) is not None:
            latest.broadcast.watch(viewer)
        if self._closing is not None:
            viewer.close(*self._closing)
        self._rooms[name] = room
        return room

    def show(self, name: str, session: Session) -> None:
        """Show a session that has started on another replica."""
        room = self._rooms[name] = self.find(name)
        room.begin(session)

    def leave(self, room: Room, viewer: Outbox) -> None:
        """Remove a viewer's connection that has ended."""
        room.viewers.discard(viewer)
        if (latest := room.latest) is not None:
            latest.broadcast.detach(viewer)
        self._tidy(room)

    def forget(self, session: Session) -> None:
        """Remove a session that has been forgotten."""
        room = self._rooms.get(session.begin.room or "")
        if room is not None and room.session is session:
            room.session = None
            self._tidy(room)

    def close(self, code: int, reason: str) -> None:
        """Close the connections of all viewers, and of those that come later."""
        self._closing = code, reason
        for room in self._rooms.values():
            for viewer in room.viewers:
                viewer.close(code, reason)

    @property
    def watched(self) -> bool:
        """Whether viewers are connected."""
        return any(room.viewers for room in self._rooms.values())

    def find(self, name: str) -> Room:
        """Return a room, which need not have a session.  Raises `Refused` if the room does not exist."""
        if not re.fullmatch(ROOM_NAME, name):
            raise Refused("room", f"room must be {ROOM_RULE}", "room")
        if self._assigned and name not in self._assigned:
            raise Refused(
                "room", f"there is no room {name!r} on this server", "room"
            )  # viewers need not know the others
        return self._rooms.get(name) or Room(name, partial(self._past, name))

    def _tidy(self, room: Room) -> None:
        """Forget a room that is unused and has no owner; if there are too many unused rooms, the oldest."""
        if not room.owner and not room.in_use:
            self._rooms.pop(room.name, None)
        while len(self._rooms) > _MOST_ROOMS:
            unused = next((each for each in self._rooms.values() if not each.in_use), None)
            if unused is None:
                return
            del self._rooms[unused.name]
