"""A talk with viewers: what is counted of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from redraft.measure.loadtest.audience import Heard
from redraft.measure.loadtest.viewers import Seen, Show, figures

PARTIAL, FIRST, SECOND = ("partial", "1", "de", 0), ("final", "1", "de", 1), ("final", "2", "de", 0)


def wire(key: tuple[Any, ...], **more: Any) -> bytes:
    return json.dumps(dict(zip(("type", "utterance", "language", "seq"), key, strict=True)) | more).encode()


def found(tmp_path: Path, arrivals: list[tuple[int, bytes, float]]) -> dict[str, Any]:
    """The row of two viewers to whom this came."""
    heard = Heard()
    for arrival in arrivals:
        heard.add(*arrival)
    heard.write(tmp_path / "heard.npz")
    cpu = {"alone": 0.1, "server": 0.2, "replicas": 0.25, "audience": 0.5}
    seen = Seen({PARTIAL: 9.5, FIRST: 10.0, SECOND: 11.0}, begun=9.0, ended=13.0, connected=2, cpu=cpu)
    return dict(figures(Show(2, 2, 4.0), seen, tmp_path / "heard.npz"))


def test_viewers_that_get_everything_once(tmp_path: Path) -> None:
    each = [(viewer, wire(key), at + viewer / 10) for key, at in ((FIRST, 10.1), (SECOND, 11.1)) for viewer in (0, 1)]
    row = found(tmp_path, [*each, (0, wire(PARTIAL), 9.6)])
    assert (row["lost"], row["doubled"], row["disordered"], row["not_connected"], row["finals"]) == (0, 0, 0, 0, 2)
    assert row["added_lag_p50_ms"] == pytest.approx(100) and row["added_lag_max_ms"] == pytest.approx(200)
    assert (row["viewers_cpu"], row["viewers_a_core"]) == (0.25, 8)
    assert row["messages_a_second"] == pytest.approx(5 / 2 / 4, abs=0.01)


def test_what_is_lost_doubled_or_in_another_order_is_counted(tmp_path: Path) -> None:
    again = wire(FIRST, lag_ms=0)  # the same caption, sent again in other words
    arrivals = [(0, wire(FIRST), 10.1), (0, again, 10.2), (1, wire(SECOND), 11.1), (1, wire(FIRST), 11.2)]
    row = found(tmp_path, arrivals)
    assert (row["lost"], row["doubled"], row["disordered"]) == (1, 1, 1)


def test_what_came_before_all_viewers_were_there_does_not_count_as_lag(tmp_path: Path) -> None:
    heard = [(viewer, wire(key), 50.0) for key in (FIRST, SECOND) for viewer in (0, 1)]
    row = found(tmp_path, heard)
    assert row["added_lag_p50_ms"] == pytest.approx(39_500)
    assert np.isclose(row["messages_a_second"], 0)
