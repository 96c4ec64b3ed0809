"""Viewers on other replicas: captions go through Redis, so any replica can serve the viewers of any session.

    feed      publishes a session: the other replicas are like one more viewer
    mirror    a session of another replica as its viewers see it
    listener  receives what is published, and lets mirrors read what they missed
    rooms     the session in each room, on any replica
    store     keys and operations in Redis
    fanout    combines these for `redraft.serve.hub`

The session itself is the source of truth.  Redis has a *log* of what its viewers may see, and pub/sub announces new
entries.  Positions of entries only increase, so a replica that missed some continues reading from its own position.
After a failure of Redis, the session's replica writes the log again from its transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from redraft.serve.live import LiveSession
from redraft.serve.rooms import Rooms
from redraft.serve.service import Offer
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
    """Return the fan-out of a replica, see `Fanout`; None if the operator has not configured it.

    Raises:
        MissingExtra: the package for Redis is not installed.
        OptionError: the address is invalid.
    """
    if settings.fanout is None:
        return None
    from redraft.serve.fanout.fanout import Fanout  # needs an extra

    return Fanout(settings, sessions, rooms, offer, lost)
