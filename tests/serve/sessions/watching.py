"""A room and its viewers."""

from __future__ import annotations

from typing import Any

from tests.serve.servers import Socket
from tests.serve.talking import say

ROOM = "hall-1"


WATCH = f"/v1/rooms/{ROOM}/watch"


def state(message: dict[str, Any]) -> tuple[str, str, str | None]:
    return message["type"], message["state"], message.get("session")


def talk(socket: Socket, text: str, **fields: Any) -> str:
    """A session in the room, with one sentence; its name."""
    started = socket.start(room=ROOM, method="ar", **fields)
    assert (started["type"], started.get("room")) == ("started", ROOM), started
    say(socket, text)
    socket.until("final")
    return str(started["session"])
