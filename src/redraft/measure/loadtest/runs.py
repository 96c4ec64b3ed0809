"""The two load tests: one run, and the search for the greatest number of talks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeAlias

from redraft.measure.eval.figures import Row
from redraft.measure.loadtest.crowd import Outcome, Plan, hold
from redraft.measure.loadtest.figures import beyond, row
from redraft.measure.loadtest.job import Job
from redraft.measure.loadtest.process import ADMIT_ALL
from redraft.measure.loadtest.search import greatest

#: Shows how a run goes on: what is given to it is told how many seconds have passed.
Progress: TypeAlias = Callable[[Plan], AbstractContextManager[Callable[[float], None]]]
#: Told of every run when it is over.
Tell: TypeAlias = Callable[[Outcome], None]


async def load(job: Job, plan: Plan, *, admission: bool, progress: Progress, tell: Tell) -> Row:
    """Hold the talks of a plan; the row is written to the job's file.

    Args:
        admission: whether a server that is started may refuse talks; one that runs already decides by itself.

    Raises:
        ServerError: the server does not start, cannot be reached, or has died.
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
    """About the greatest number of talks that are carried: the row of its trial, or 0 talks and the row of the fewest.

    Row and trials are written to the job's file.

    Args:
        plan: of a trial, but for the number of talks.
        first, most: the number that is tried first, and the one beyond which none is.
        max_p95: the longest 95th percentile of the caption lag, in seconds.

    Raises:
        ServerError: as of `load`.
    """
    trials: dict[int, Row] = {}

    async def carried(talks: int) -> bool:
        tried = replace(plan, talks=talks)
        with progress(tried) as passed:
            outcome = await hold(address, job.script, tried, passed)
        tell(outcome)
        trials[talks] = row(outcome)
        return not (outcome.refused or beyond(trials[talks], max_p95, None))

    async with job.serving(plan.method, busy=ADMIT_ALL) as address:
        talks = await greatest(carried, first, most)
    labels = job.labels(plan.method)
    found = {**labels, "admission": _admission(job, False), **trials[talks or min(trials)], "talks": talks}
    lags = sorted((tried, each["caption_lag_p95_ms"]) for tried, each in trials.items())
    job.write(found, ("method", "options"), trials={f"{plan.method} {labels['options']}".strip(): lags})
    return found


def _admission(job: Job, admission: bool) -> str:
    return "" if job.server else "on" if admission else "off"
