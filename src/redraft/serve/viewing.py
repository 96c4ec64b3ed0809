"""What viewers ask for: sessions and rooms, whichever replica has them."""

from __future__ import annotations

from redraft.serve.hub import Hub
from redraft.serve.outbox import Outbox
from redraft.serve.refusals import Refused
from redraft.serve.rooms import Room
from redraft.serve.watched import Watched


async def session_named(hub: Hub, name: str) -> Watched:
    """The session that viewers know by this name.

    Raises:
        Refused: there is none, or this cannot be found out at the moment.
    """
    try:
        return hub.find(name)
    except Refused:
        if hub.fanout and (found := await hub.fanout.find(name)):
            return found
        raise


async def room_named(hub: Hub, name: str) -> Room:
    """A room, which need not have a session.

    Raises:
        Refused: there is no such room.
    """
    hub.rooms.find(name)  # refuses what is none before anything is asked
    if hub.fanout:
        await hub.fanout.enter_room(name)
    return hub.rooms.find(name)


async def enter(hub: Hub, name: str, viewer: Outbox) -> Room:
    """Let a viewer into a room.

    Raises:
        Refused: there is no such room, or no place for one more viewer.
    """
    await room_named(hub, name)
    room = hub.rooms.enter(name, viewer, hub.settings.viewers)
    if hub.fanout:
        await hub.fanout.follow_room(name)
    return room


def check_places(hub: Hub, session: Watched) -> None:
    """Whether a session has room for one more viewer here.

    Raises:
        Refused: it has none.
    """
    most = hub.settings.viewers
    if len(session.delivery.viewers) + session.readers >= most:
        raise hub.admission.refused("limit", f"all {most} places for viewers of this session are taken")
