"""Slopes, the search for the greatest number, the figures of a run and the bounds that it is held against."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redraft.captions.events import Caption, Update
from redraft.client import ServerError
from redraft_bench.loadtest.crowd import Outcome, Plan
from redraft_bench.loadtest.figures import beyond, row
from redraft_bench.loadtest.gauges import Sample
from redraft_bench.loadtest.hearing import Hearing
from redraft_bench.loadtest.runs import greatest


def sample(time: float, megabytes: float, cpu: float = 0.0, passes: float = 0.0) -> Sample:
    names = ("process_resident_memory_bytes", "process_cpu_seconds_total", "redraft_pass_seconds_count")
    values = dict(zip(names, (1e6 * megabytes, cpu, passes), strict=True))
    held = dict.fromkeys(("redraft_sessions", "redraft_languages", "redraft_slots_in_use"), 2.0)
    return Sample(time, {**values, **held, "redraft_pass_requests_sum": 3 * passes}, cpu / 10)


@pytest.mark.parametrize(
    ("limit", "first", "most", "found"),
    [
        (0, 1, 64, 0),
        (1, 1, 64, 1),
        (11, 1, 64, 11),
        (40, 1, 8, 8),
        (7, 1, 7, 7),
        (11, 8, 64, 11),
        (5, 16, 64, 5),
        (0, 16, 64, 0),
        (40, 64, 8, 8),
        (249, 64, 512, 248),
    ],
)
def test_greatest_number_is_found_with_few_trials(limit: int, first: int, most: int, found: int) -> None:
    tried: list[int] = []

    async def carried(talks: int) -> bool:
        tried.append(talks)
        return talks <= limit

    assert asyncio.run(greatest(carried, first, most)) == found
    assert len(set(tried)) == len(tried) <= 9 and max(tried) <= most


def outcome(**more: Any) -> Outcome:
    """Two talks of which one was refused; captions after the 10th second count, and lag 0.1 s to 2 s."""
    hearing = Hearing()
    for number in range(30):
        hearing.sent(Update(str(number), 0, "a"), float(number))
        lag = 9.0 if number < 10 else 0.1 * (number - 9)
        hearing.received(Caption(str(number), 0, "de", "ein", final=True), number + lag)
    samples = [sample(second, 50, second / 2, 10 * second) for second in range(0, 40, 2)]
    refused = [ServerError("capacity", "full: 97%"), ServerError("capacity", "full: 99%")]
    return Outcome(Plan(3, 30.0), 10.0, 30.0, [hearing, Hearing()], refused, samples=samples, late=[0.002], **more)


def test_figures_of_run() -> None:
    found = row(outcome())
    assert (found["talks"], found["sessions"], found["refused"], found["refusals"]) == (3, 2, 2, "capacity 2")
    assert (found["updates"], found["captions"], found["passed_over"], found["unanswered"]) == (30, 30, 0, 0)
    assert found["caption_lag_p50_ms"] == pytest.approx(1050)
    assert found["caption_lag_p95_ms"] == pytest.approx(1905)
    assert found["caption_lag_max_ms"] == pytest.approx(2000)
    assert found["caption_lag_slope"] == pytest.approx(6)
    assert found["server_cpu"] == pytest.approx(0.5) and found["client_cpu"] == pytest.approx(0.05)
    assert (found["target_passes"], found["lanes_a_pass"], found["server_mb"]) == (200, 3, 50)
    assert found["late_p95_ms"] == pytest.approx(2) and found["left_over"] == 0


def test_bounds_that_are_broken_are_told_in_words() -> None:
    good = row(outcome())
    assert beyond(good, None, None) == beyond(good, 2.0, 0.5) == []
    assert beyond(good, 1.9, None) == ["p95 of the caption lag is 1905 ms, over 1900"]
    assert beyond({**good, "server_mb_slope": 1.5}, None, 1.0) == ["the server grows by 1.50 MB a minute, over 1.00"]
    assert beyond({**good, "server_mb_slope": None}, None, 1.0) == [
        "server_mb_slope was not measured: the run is too short, or the server does not tell it"
    ]
    left = row(outcome(broken=[ServerError("connection", "gone")], left={"sessions": 1, "lanes": 2, "slots": 2}))
    assert [sentence.split()[0] for sentence in beyond(left, None, None)] == ["1", "5"]
    assert left["breaks"] == "connection 1"
