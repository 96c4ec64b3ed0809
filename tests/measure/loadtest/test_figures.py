"""Slopes, the search for the greatest number, the figures of a run and the bounds that it is held against."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from redraft.captions.events import Caption, Update
from redraft.client import ServerError
from redraft_bench.bench.tables import LIVE
from redraft_bench.eval import columns
from redraft_bench.loadtest.crowd import Outcome, Plan
from redraft_bench.loadtest.figures import beyond, row
from redraft_bench.loadtest.gauges import Sample, memory_slope, slope
from redraft_bench.loadtest.hearing import Hearing
from redraft_bench.loadtest.search import greatest


def sample(time: float, megabytes: float, cpu: float = 0.0, passes: float = 0.0) -> Sample:
    names = ("process_resident_memory_bytes", "process_cpu_seconds_total", "redraft_pass_seconds_count")
    values = dict(zip(names, (1e6 * megabytes, cpu, passes), strict=True))
    held = dict.fromkeys(("redraft_sessions", "redraft_languages", "redraft_slots_in_use"), 2.0)
    return Sample(time, {**values, **held, "redraft_pass_requests_sum": 3 * passes}, cpu / 10)


def test_a_slope_is_that_of_the_line_through_the_points() -> None:
    assert slope([(0, 5), (30, 6), (60, 7)]) == pytest.approx(2)
    assert slope([(0, 0), (60, 6), (120, 6)]) == pytest.approx(3)  # least squares
    assert slope([(1, 5), (1, 6)]) is None and slope([]) is None


def test_memory_that_is_taken_at_the_start_does_not_count() -> None:
    warming = [sample(second, 100 + 5 * second) for second in range(30)]
    assert memory_slope([*warming, *(sample(second, 250) for second in range(30, 121))]) == pytest.approx(0)
    assert memory_slope([sample(second, 100 + second / 60) for second in range(121)]) == pytest.approx(1)
    assert memory_slope([]) is None


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
def test_the_greatest_number_is_found_with_few_trials(limit: int, first: int, most: int, found: int) -> None:
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
        hearing.said(Update(str(number), 0, "a"), float(number))
        lag = 9.0 if number < 10 else 0.1 * (number - 9)
        hearing.heard(Caption(str(number), 0, "de", "ein", final=True), number + lag)
    samples = [sample(second, 50, second / 2, 10 * second) for second in range(0, 40, 2)]
    refused = [ServerError("capacity", "full: 97%"), ServerError("capacity", "full: 99%")]
    return Outcome(Plan(3, 30.0), 10.0, 30.0, [hearing, Hearing()], refused, samples=samples, late=[0.002], **more)


def test_figures_of_a_run() -> None:
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


def test_what_a_system_does_not_tell_is_not_taken_for_nothing() -> None:
    done = outcome()
    done.samples = [
        replace(each, values={name: value for name, value in each.values.items() if "process" not in name})
        for each in done.samples
    ]
    found = row(done)
    assert [found[name] for name in ("server_mb", "server_mb_slope", "server_cpu")] == [None] * 3
    assert found["client_cpu"] == pytest.approx(0.05) and len(beyond(found, None, 1.0)) == 1


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


def test_every_column_of_the_tables_is_a_figure_with_a_heading() -> None:
    figures = {*row(outcome()), "method", "options", "admission"}
    assert set(LIVE) <= figures
    assert figures - {"options"} <= set(columns.COLUMNS)
