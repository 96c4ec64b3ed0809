"""The door to other servers: what a server asks about sessions that it does not have itself.

Without the setting ``fanout``, there are none.  The package redraft-fanout, found by its entry point in
`ENTRY_POINT_GROUP`, has a `Fanout` that asks Redis.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from redraft import protocol
from redraft.errors import missing_package
from redraft.serve.sessions.live import LiveSession
from redraft.serve.sessions.rooms import Session
from redraft.serve.settings import ServeSettings

if TYPE_CHECKING:
    from redraft.serve.sessions.hub import Hub

ENTRY_POINT_GROUP = "redraft.fanout"


class Fanout:
    """A server alone; a subclass connects it with others.  Use it on the server's event loop only.

    Args:
        hub: this server and its sessions.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @classmethod
    def check(cls, settings: ServeSettings) -> None:
        """Raise `OptionError` if the settings cannot be used, and `Unavailable` if something does not answer yet."""

    def start(self) -> None:
        """Start, with the server."""

    async def stop(self) -> None:
        """Pass on what is left, and end."""

    def drain(self) -> None:
        """Close the connections of viewers of other servers' sessions."""

    def sweep(self) -> None:
        """Forget what is not used any more; called about every second."""

    @property
    def viewers(self) -> int:
        """Number of viewers connected here to sessions of other servers."""
        return 0

    # Sessions of this server

    def reserved(self, begin: protocol.Begin, name: str, owner: str) -> AbstractAsyncContextManager[None]:
        """Reserve a room on all servers for a session that starts in the block; entering may raise `Refused`."""
        return nullcontext()

    def publish(self, session: LiveSession) -> None:
        """Let other servers show a session that has begun."""

    def forget(self, session: LiveSession) -> None:
        """Stop publishing a session that has been forgotten."""

    def drop(self, session: LiveSession) -> None:
        """Stop publishing a session that another server has taken over."""

    def left(self, session: LiveSession) -> None:
        """Let others have the room of a session that has lost its connection."""

    async def moved(self, session: LiveSession) -> bool:
        """Whether another server has taken over a session."""
        return False

    # Sessions of other servers

    async def find(self, name: str) -> Session | None:
        """Return a session of another server; None if there is none.  Raises `Refused` if that is unknown."""
        return None

    async def refresh(self, room: str) -> None:
        """Show a room's session if it is on another server."""

    async def follow_room(self, room: str) -> None:
        """Show sessions that start in a room on other servers, as long as it is used here."""

    async def offer(self) -> str:
        """Return what servers with sessions offer, as JSON.  Raises `Refused` if it is unknown."""
        return self._hub.offer.wire()


def fanout_class(settings: ServeSettings) -> type[Fanout]:
    """Return the class for the settings.  Raises `MissingExtra` if they need a package that is not installed."""
    if settings.fanout is None:
        return Fanout
    for point in entry_points(group=ENTRY_POINT_GROUP):
        found: type[Fanout] = point.load()
        return found
    raise missing_package("the setting fanout needs redraft-fanout", "packages/redraft-fanout")
