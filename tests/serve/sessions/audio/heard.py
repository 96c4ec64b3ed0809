"""Audio sessions, and what they hear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.serve.hearing import command
from tests.serve.servers import Running, running


@contextmanager
def hearing(*options: str, **settings: Any) -> Iterator[Running]:
    """A server with a scripted recogniser."""
    with running(recogniser="moonshine", **settings) as server:
        server.hub.recognisers.command = command(*options)
        yield server
    assert server.hub.recognisers.taken == 0  # all places are given back


def errors(messages: list[dict[str, Any]]) -> list[str]:
    return [each["message"] for each in messages if each["type"] == "error"]
