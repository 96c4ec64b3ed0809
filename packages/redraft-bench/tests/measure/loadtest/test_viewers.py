"""Counts of a talk with viewers."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import pytest

from redraft.errors import OptionError
from redraft_bench.loadtest.viewers import Key, Seen, Show, _redis, figures

PARTIAL: Key = ("partial", "1", "de", 0)
FIRST: Key = ("final", "1", "de", 1)
SECOND: Key = ("final", "2", "de", 0)
JAPANESE: Key = ("final", "1", "ja", 1)


def found(*arrivals: list[tuple[Key, float]] | None, **show: Any) -> dict[str, Any]:
    """The row of two viewers to whom this came."""
    cpu = {"alone": 0.1, "server": 0.2, "replicas": 0.25, "client": 0.5}
    captions = {PARTIAL: 9.5, FIRST: 10.0, JAPANESE: 10.5, SECOND: 11.0}
    return dict(figures(Show(2, 2, 4.0, **show), Seen(captions, list(arrivals), begun=9.0, ended=13.0, cpu=cpu)))


def test_viewers_that_get_everything_once() -> None:
    row = found([(PARTIAL, 9.6), (FIRST, 10.1), (SECOND, 11.1)], [(FIRST, 10.2), (SECOND, 11.2)])
    assert (row["lost"], row["doubled"], row["disordered"], row["not_connected"], row["finals"]) == (0, 0, 0, 0, 2)
    assert row["added_lag_p50_ms"] == pytest.approx(100) and row["added_lag_max_ms"] == pytest.approx(200)
    assert (row["viewers_cpu"], row["viewers_a_core"]) == (0.25, 8)
    assert row["messages_a_second"] == pytest.approx(5 / 2 / 4, abs=0.01)


def test_only_what_viewers_ask_for_is_missed() -> None:
    each, languages = [(FIRST, 11.5), (SECOND, 11.5)], ("de", "ja")
    asked = found(each, each, languages=languages, wanted=("de",))
    assert (asked["lost"], asked["finals"], asked["sent"]) == (0, 2, "de")
    every = found(each, each, languages=languages)
    assert (every["lost"], every["finals"], every["sent"]) == (2, 3, "de,ja")


def test_what_is_lost_doubled_or_in_another_order_is_counted() -> None:
    row = found([(FIRST, 10.1), (FIRST, 10.2)], [(SECOND, 11.1), (FIRST, 11.2)])
    assert (row["lost"], row["doubled"], row["disordered"]) == (1, 1, 1)


def test_lag_before_all_viewers() -> None:
    row = found([(FIRST, 50.0), (SECOND, 50.0)], None)
    assert row["not_connected"] == 1
    assert row["added_lag_p50_ms"] == pytest.approx(39_500)
    assert row["messages_a_second"] == 0


def test_redis_that_does_not_start_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")

    async def work() -> None:
        async with _redis():
            raise AssertionError

    with pytest.raises(OptionError, match="redis-server ended with status 1: run '/bin/false --port"):
        asyncio.run(asyncio.wait_for(work(), 20))
