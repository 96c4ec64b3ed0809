"""Find sessions and rooms for viewers, on any replica."""

from __future__ import annotations

from redraft.serve.hub import Hub
from redraft.serve.outbox import Outbox
from redraft.serve.rooms import Room
from redraft.serve.watched import Watched


async def session_named(hub: Hub, name: str) -> Watched:
    """Return the session with a public name.

    Raises:
        Refused: the session does not exist, or Redis cannot be reached.
    """
    if not hub.has(name) and hub.fanout and (found := await hub.fanout.find(name)):
        return found
    return hub.find(name)


async def room_named(hub: Hub, name: str) -> Room:
    """Return a room, which need not have a session.

    Raises:
        Refused: the room does not exist.
    """
    hub.rooms.find(name)  # rejects unknown rooms first
    if hub.fanout:
        await hub.fanout.enter_room(name)
    return hub.rooms.find(name)


async def enter(hub: Hub, name: str, viewer: Outbox) -> Room:
    """Admit a viewer to a room.

    Raises:
        Refused: the room does not exist, or is full.
    """
    await room_named(hub, name)
    room = hub.rooms.enter(name, viewer, hub.settings.viewers)
    if hub.fanout:
        await hub.fanout.follow_room(name)
    return room


def check_places(hub: Hub, session: Watched) -> None:
    """Check that a session can have another viewer here.

    Raises:
        Refused: the maximum number of viewers is reached.
    """
    most = hub.settings.viewers
    if session.audience >= most:
        raise hub.admission.refused("limit", f"all {most} places for viewers of this session are taken")
