"""Rooms: names that stay the same from session to session, so that links of viewers stay good.

A room has one session at a time.  Its viewers are connected to the room: they may come before a session begins, and
are taken over to the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from redraft.errors import OptionError
from redraft.serve import protocol
from redraft.serve.names import ROOM_NAME, ROOM_RULE
from redraft.serve.outbox import Outbox
from redraft.serve.refusals import Refused
from redraft.serve.security import Keys
from redraft.serve.watched import Watched

#: Rooms whose owners are remembered.
_MOST_ROOMS = 10_000


def check_rooms(rooms: Mapping[str, tuple[str, ...]], keys: Keys | None) -> None:
    """Check the rooms that the operator assigns to API keys.

    Raises:
        OptionError: the name of a room is invalid, or there is no such key.
    """
    for room, names in rooms.items():
        if not re.fullmatch(ROOM_NAME, room):
            raise OptionError(f"setting rooms: the name of a room must be {ROOM_RULE}, not {room!r}")
        for name in names:
            if keys is None:
                raise OptionError(f"setting rooms: room {room!r} names key {name!r}, but the setting keys is missing")
            if name not in keys:
                raise OptionError(f"setting rooms: room {room!r} names key {name!r}, which is not in the file of keys")


@dataclass(slots=True, eq=False)
class Room:
    """A room and who is in it.

    Attributes:
        name: part of addresses.
        owner: name of the API key that used it first; None before that, empty where no keys are needed.
        session: the latest one that is still kept.
        coming: whether a session is about to begin in it.
        viewers: connections that stay from session to session.
    """

    name: str
    owner: str | None = None
    session: Watched | None = None
    coming: bool = False
    viewers: set[Outbox] = field(default_factory=set)

    @property
    def in_use(self) -> bool:
        """Whether somebody is in it, or has been until a moment ago."""
        return bool(self.viewers) or self.session is not None or self.coming

    def message(self) -> protocol.RoomState:
        """What it shows now."""
        session = self.session
        if session is None:
            return protocol.RoomState(room=self.name, state="waiting")
        state: Literal["over", "live"] = "over" if session.done else "live"
        return protocol.RoomState(
            room=self.name, state=state, session=session.name, source=session.begin.source, targets=session.targets
        )

    def enter(self, viewer: Outbox) -> None:
        """Send to a viewer from now on."""
        self.viewers.add(viewer)
        viewer.put(self.message().wire())
        if self.session is not None:
            self.session.watch(viewer)

    def leave(self, viewer: Outbox) -> None:
        """A viewer's connection has ended."""
        self.viewers.discard(viewer)
        if self.session is not None:
            self.session.detach(viewer)

    def begin(self, session: Watched) -> None:
        """Show a session; the one before it, if it goes on, is ended."""
        earlier, self.session = self.session, session
        if earlier is not None:
            earlier.delivery.viewers -= self.viewers
            if not earlier.ended:
                earlier.delivery.replaced(f"another session has taken over room {self.name!r}")
                earlier.end()
        session.over = partial(self._over, session)
        for viewer in self.viewers:
            viewer.put(self.message().wire())
            session.watch(viewer)

    def _over(self, session: Watched) -> None:
        if self.session is session:
            for viewer in self.viewers:
                viewer.put(self.message().wire())


class Rooms:
    """The rooms of a server.

    Args:
        assigned: the rooms that there are, with the names of the API keys that may use each, all if it has none; where
            no room is given, there is any, and it belongs to the key that used it first.
        waited: rooms without a session that viewers may wait for at a time.
        refused: makes refusals out of code and sentence.
    """

    def __init__(
        self, assigned: Mapping[str, tuple[str, ...]], waited: int, refused: Callable[[str, str], Refused] = Refused
    ) -> None:
        self._assigned, self._waited, self._refused = assigned, waited, refused
        self._rooms: dict[str, Room] = {}

    @contextmanager
    def taken(self, name: str, owner: str, *, take_over: bool) -> Iterator[Room]:
        """A room in which a session is to begin while the block lasts; nobody else can begin one meanwhile.

        Args:
            name: of the room.
            owner: name of the API key.
            take_over: whether to take it from a session that is in use.

        Raises:
            Refused: the room is in use, or not for this key.
        """
        room = self._found(name)
        keys = self._assigned.get(name, ())
        if (keys and owner not in keys) or (not self._assigned and room.owner not in (None, owner)):
            raise self._refused("room", f"room {name!r} may not be used with this API key")
        if room.coming:
            raise self._refused("room", f"a session is about to begin in room {name!r}: try again in a moment")
        if room.session is not None and room.session.in_use and not take_over:
            raise self._refused(
                "room", f"room {name!r} is in use: end its session, or begin this one with take_over to end it"
            )
        self._rooms[name], room.coming = room, True
        try:
            yield room
            room.owner = owner
        finally:
            room.coming = False
            self._tidy(room)

    def enter(self, name: str, viewer: Outbox, most: int) -> Room:
        """Let a viewer into a room, which need not have a session.

        Raises:
            Refused: there is no such room, or no place for one more viewer.
        """
        room = self._found(name)
        if len(room.viewers) >= most:
            raise self._refused("limit", f"all {most} places for viewers of this room are taken")
        waiting = sum(each.session is None and bool(each.viewers) for each in self._rooms.values())
        if room.session is None and not room.viewers and waiting >= self._waited:
            raise self._refused("capacity", "too many rooms without a session are waited for: try again later")
        room.enter(viewer)
        self._rooms[name] = room
        return room

    def show(self, name: str, session: Watched) -> None:
        """Show a session that has begun on another replica."""
        room = self._rooms[name] = self._found(name)
        room.begin(session)

    def leave(self, room: Room, viewer: Outbox) -> None:
        """A viewer's connection has ended."""
        room.leave(viewer)
        self._tidy(room)

    def find(self, name: str) -> Room:
        """A room, which need not have a session.

        Raises:
            Refused: there is no such room.
        """
        return self._found(name)

    def forget(self, session: Watched) -> None:
        """A session is kept no longer."""
        room = self._rooms.get(session.begin.room or "")
        if room is not None and room.session is session:
            room.session = None
            self._tidy(room)

    def close(self, code: int, reason: str) -> None:
        """Close the connections of all viewers."""
        for room in self._rooms.values():
            for viewer in room.viewers:
                viewer.close(code, reason)

    def _found(self, name: str) -> Room:
        if not re.fullmatch(ROOM_NAME, name):
            raise self._refused("room", f"room must be {ROOM_RULE}")
        if self._assigned and name not in self._assigned:
            raise self._refused("room", f"room must be one of {', '.join(self._assigned)}, not {name!r}")
        return self._rooms.get(name) or Room(name)

    def _tidy(self, room: Room) -> None:
        """Forget a room that nobody uses or owns; of those that nobody uses, the oldest if there are too many."""
        if not room.owner and not room.in_use:
            self._rooms.pop(room.name, None)
        while len(self._rooms) > _MOST_ROOMS:
            unused = next((each for each in self._rooms.values() if not each.in_use), None)
            if unused is None:
                return
            del self._rooms[unused.name]
