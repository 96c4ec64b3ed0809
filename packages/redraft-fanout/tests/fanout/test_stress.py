"""Random drops, moves, kills and stops of servers and of Redis, with viewers on all servers."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

from fanout.conftest import RedisServer
from tests.client.test_stress import Place, stress


def test_stress(redis: RedisServer) -> None:
    """Redis comes back empty."""
    mortal = SimpleNamespace(port=redis.port, start=redis.start, kill=redis.kill, stop=redis.kill)
    with ExitStack() as stack:
        servers = [Place(stack, fanout=redis.url) for _ in range(2)]
        asyncio.run(stress(0, servers, [Place(stack, fanout=redis.url, viewers_only=True)], mortal))
