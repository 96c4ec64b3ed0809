"""Sessions on several servers."""

from __future__ import annotations

from typing import Any

from redraft_fanout.fanout import RedisFanout
from tests.serve.servers import Running, Socket
from tests.waiting import eventually


def fanout_of(server: Running) -> RedisFanout:
    assert isinstance(server.hub.fanout, RedisFanout)
    return server.hub.fanout


def begin(socket: Socket, *targets: str, **fields: Any) -> str:
    """Begin a session; its name."""
    started = socket.start(*targets, method="ar", **fields)
    assert started["type"] == "started", started
    return str(started["session"])


def seen(server: Running, name: str) -> bool:
    """Whether a replica knows of a session."""
    return server.ask(f"/v1/sessions/{name}").status == 200


def watch(server: Running, name: str) -> Any:
    eventually(lambda: seen(server, name))
    return server.socket(f"/v1/watch/{name}")
