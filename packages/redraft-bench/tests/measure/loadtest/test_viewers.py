"""Counts of a talk with viewers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from redraft.client import ServerError
from redraft.errors import OptionError
from redraft_bench.loadtest import viewers
from redraft_bench.loadtest.audience import Arrivals
from redraft_bench.loadtest.redis import RedisProcess
from redraft_bench.loadtest.viewers import Seen, Show, figures

PARTIAL, FIRST, SECOND = ("partial", "1", "de", 0), ("final", "1", "de", 1), ("final", "2", "de", 0)
JAPANESE = ("final", "1", "ja", 1)


def wire(key: tuple[Any, ...], **more: Any) -> bytes:
    return json.dumps(dict(zip(("type", "utterance", "language", "seq"), key, strict=True)) | more).encode()


def found(tmp_path: Path, arrivals: list[tuple[int, bytes, float]], **show: Any) -> dict[str, Any]:
    """The row of two viewers to whom this came."""
    record = Arrivals()
    for arrival in arrivals:
        record.add(*arrival)
    record.write(tmp_path / "arrivals.npz")
    cpu = {"alone": 0.1, "server": 0.2, "replicas": 0.25, "audience": 0.5}
    seen = Seen({PARTIAL: 9.5, FIRST: 10.0, JAPANESE: 10.5, SECOND: 11.0}, begun=9.0, ended=13.0, connected=2, cpu=cpu)
    return dict(figures(Show(2, 2, 4.0, **show), seen, tmp_path / "arrivals.npz"))


def test_viewers_that_get_everything_once(tmp_path: Path) -> None:
    each = [(viewer, wire(key), at + viewer / 10) for key, at in ((FIRST, 10.1), (SECOND, 11.1)) for viewer in (0, 1)]
    row = found(tmp_path, [*each, (0, wire(PARTIAL), 9.6)])
    assert (row["lost"], row["doubled"], row["disordered"], row["not_connected"], row["finals"]) == (0, 0, 0, 0, 2)
    assert row["added_lag_p50_ms"] == pytest.approx(100) and row["added_lag_max_ms"] == pytest.approx(200)
    assert (row["viewers_cpu"], row["viewers_a_core"]) == (0.25, 8)
    assert row["messages_a_second"] == pytest.approx(5 / 2 / 4, abs=0.01)


def test_only_what_viewers_ask_for_is_missed(tmp_path: Path) -> None:
    each = [(viewer, wire(key), 11.5) for key in (FIRST, SECOND) for viewer in (0, 1)]
    languages = ("de", "ja")
    asked = found(tmp_path, each, languages=languages, wanted=("de",))
    assert (asked["lost"], asked["finals"], asked["sent"]) == (0, 2, "de")
    every = found(tmp_path, each, languages=languages)
    assert (every["lost"], every["finals"], every["sent"]) == (2, 3, "de,ja")


def test_what_is_lost_doubled_or_in_another_order_is_counted(tmp_path: Path) -> None:
    again = wire(FIRST, lag_ms=0)  # the same caption, sent again in other words
    arrivals = [(0, wire(FIRST), 10.1), (0, again, 10.2), (1, wire(SECOND), 11.1), (1, wire(FIRST), 11.2)]
    row = found(tmp_path, arrivals)
    assert (row["lost"], row["doubled"], row["disordered"]) == (1, 1, 1)


def test_lag_before_all_viewers(tmp_path: Path) -> None:
    arrivals = [(viewer, wire(key), 50.0) for key in (FIRST, SECOND) for viewer in (0, 1)]
    row = found(tmp_path, arrivals)
    assert row["added_lag_p50_ms"] == pytest.approx(39_500)
    assert np.isclose(row["messages_a_second"], 0)


def test_viewers_that_cannot_connect_are_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(viewers, "_CONNECTED", 1.0)
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def noted(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*command, **options))
        return started[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)

    async def work(address: str) -> None:
        async with viewers._audience(Show(1, 0, 1.0), [address], tmp_path / "arrivals.npz"):
            raise AssertionError

    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections wait in its queue
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/watch/x"
        with pytest.raises(ServerError, match="the viewers were not connected within 1 seconds"):
            asyncio.run(asyncio.wait_for(work(address), 20))
    (process,) = started
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_redis_that_does_not_start_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")

    async def work() -> None:
        async with RedisProcess.started():
            raise AssertionError

    with pytest.raises(OptionError, match="redis-server ended with status 1: run '/bin/false --port"):
        asyncio.run(asyncio.wait_for(work(), 20))
