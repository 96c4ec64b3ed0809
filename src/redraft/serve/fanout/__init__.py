"""Viewers on other replicas: captions go through Redis, so that any replica serves any session's viewers.

    feed      publishes a session: to it, all other replicas are one more viewer
    mirror    a session of another replica, as its viewers see it
    follow    keeps mirrors up to date: hears what is published, and reads what was missed
    rooms     who is in a room, whatever the replica
    store     what is kept in Redis, and under which names
    fanout    puts these together for `redraft.serve.hub`

The source of truth is the session itself.  Redis holds a *log* of what its viewers may see, and pub/sub says at once
what is new in it.  Every entry has a position that only grows, so a replica that has missed some reads on from its own.
Whenever Redis has failed, the session's replica writes the log again from its transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from redraft.serve.bodies import Offer
from redraft.serve.live import LiveSession
from redraft.serve.rooms import Rooms
from redraft.serve.settings import ServeSettings

if TYPE_CHECKING:
    from redraft.serve.fanout.fanout import Fanout


def open_fanout(
    settings: ServeSettings,
    sessions: Mapping[str, LiveSession],
    rooms: Rooms,
    offer: Callable[[], Offer],
    lost: Callable[[LiveSession], None],
) -> Fanout | None:
    """The fan-out of a replica, see `Fanout`; None where the operator wants none.

    Raises:
        MissingExtra: the package for Redis is not installed.
        OptionError: the address is invalid.
    """
    if settings.fanout is None:
        return None
    from redraft.serve.fanout.fanout import Fanout  # needs an extra

    return Fanout(settings, sessions, rooms, offer, lost)
