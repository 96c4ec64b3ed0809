"""The two load tests: a single run, and the search for the maximum number of talks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeAlias

from redraft_bench.eval.figures import Row
from redraft_bench.loadtest.crowd import Outcome, Plan, hold
from redraft_bench.loadtest.figures import beyond, row
from redraft_bench.loadtest.job import Job
from redraft_bench.loadtest.process import ADMIT_ALL

#: Shows the progress of a run; the function that it yields is called with the seconds elapsed.
Progress: TypeAlias = Callable[[Plan], AbstractContextManager[Callable[[float], None]]]
#: Relative precision of the search; trials with the same number vary by more.
CLOSE = 1 / 32
#: Trials before a number of talks counts as too many: other programs can only add to the lag.
TRIALS = 2
#: Called after each run.
Tell: TypeAlias = Callable[[Outcome], None]


async def load(job: Job, plan: Plan, *, admission: bool, progress: Progress, tell: Tell) -> Row:
    """Hold the talks of a plan, and write the row to the job's file.

    Args:
        admission: whether a server that is started may refuse talks; a running server decides by its own settings.

    Raises:
        ServerError: the server does not start, cannot be reached, or has crashed.
    """
    async with job.serving(plan.method, **({} if admission else {"busy": ADMIT_ALL})) as address:
        with progress(plan) as passed:
            outcome = await hold(address, job.script, plan, passed)
    tell(outcome)
    found = {**job.labels(plan.method), "admission": _admission(job, admission), **row(outcome)}
    job.write(found)
    return found


async def capacity(
    job: Job, plan: Plan, first: int, most: int, max_p95: float, *, progress: Progress, tell: Tell
) -> Row:
    """Find the approximate maximum number of talks; return the row of that trial.

    If not even the fewest talks were carried, the row is that of the fewest, with 0 talks.  Row and trials are written
    to the job's file.

    Args:
        plan: plan of each trial; its number of talks is replaced.
        first: number of talks of the first trial.
        most: maximum number of talks to try.
        max_p95: maximum 95th percentile of the caption lag in seconds.
        tell: called with the outcome of each trial.

    Raises:
        ServerError: the server does not start, cannot be reached, or has crashed.
    """
    trials: dict[int, Row] = {}

    async def carried(talks: int) -> bool:
        tried = replace(plan, talks=talks)
        for _ in range(TRIALS):
            with progress(tried) as passed:
                outcome = await hold(address, job.script, tried, passed)
            tell(outcome)
            trials[talks] = row(outcome)
            if not (outcome.refused or beyond(trials[talks], max_p95, None)):
                return True
        return False

    async with job.serving(plan.method, busy=ADMIT_ALL) as address:
        talks = await greatest(carried, first, most)
    labels = job.labels(plan.method)
    found = {**labels, "admission": _admission(job, False), **trials[talks or min(trials)], "talks": talks}
    lags = sorted((tried, each["caption_lag_p95_ms"]) for tried, each in trials.items())
    job.write(found, ("method", "options"), trials={f"{plan.method} {labels['options']}".strip(): lags})
    return found


def _admission(job: Job, admission: bool) -> str:
    return "" if job.server else "on" if admission else "off"


async def greatest(carried: Callable[[int], Awaitable[bool]], first: int, most: int) -> int:
    """Return the approximate maximum that is carried, with precision `CLOSE`; 0 if not even 1 is.

    The search assumes that a number is carried if a larger one is; measurements near the maximum may contradict that.

    Args:
        carried: tries a number of talks; returns whether they were carried.
        first: number of the first trial.
        most: maximum number to try.
    """
    low, high = 0, min(first, most)
    while await carried(high):
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > max(1, CLOSE * low):
        middle = (low + high) // 2
        low, high = (middle, high) if await carried(middle) else (low, middle)
    return low
