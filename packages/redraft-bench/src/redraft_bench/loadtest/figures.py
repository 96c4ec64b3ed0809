"""Figures of a load test, and the bounds to check them against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from redraft.client import ServerError
from redraft_bench.eval.figures import Row, percentile_ms
from redraft_bench.loadtest.crowd import Outcome
from redraft_bench.loadtest.gauges import memory_slope, slope


def row(outcome: Outcome) -> Row:
    """Compute the figures of a run.

    Lags are of captions whose oldest words were spoken after the warm-up.  Sessions and updates are of the whole run,
    passes and CPU time from the warm-up to the end.  Times are in milliseconds.
    """
    hearings = outcome.hearings
    lags = [lag for hearing in hearings for lag in hearing.lags if lag.spoken >= outcome.warm]
    erased, shown = (sum(getattr(each.counts, name) for each in hearings) for name in ("erased", "shown"))
    grown = slope((lag.spoken, lag.caption) for lag in lags)
    found: Row = {
        "talks": outcome.plan.talks,
        "seconds": outcome.plan.seconds,
        "sessions": len(hearings),
        "refused": len(outcome.refused),
        "refusals": _codes(outcome.refused),
        "broken": len(outcome.broken),
        "breaks": _codes(outcome.broken),
        "updates": sum(each.updates for each in hearings),
        "captions": sum(each.captions for each in hearings),
        "passed_over": sum(each.passed_over for each in hearings),
        "unanswered": sum(each.unanswered for each in hearings),
        "failures": sum(each.failures for each in hearings),
        **_quantiles("caption_lag", [lag.caption for lag in lags]),
        "caption_lag_slope": None if grown is None else round(grown, 3),
        **_quantiles("lag", [lag.answer for lag in lags if lag.answer is not None]),
        "ne_units": round(erased / shown, 4) if shown else None,
        "late_p95_ms": percentile_ms(outcome.late, 95),
        "left_over": sum(outcome.left.values()),
    }
    return {**found, **_machine(outcome)}


def _codes(errors: Iterable[ServerError]) -> str:
    return ", ".join(f"{code} {count}" for code, count in Counter(error.code for error in errors).items())


def _quantiles(name: str, seconds: Sequence[float]) -> Row:
    shares = {"p50": 50, "p95": 95, "max": 100}
    return {f"{name}_{what}_ms": percentile_ms(seconds, share) for what, share in shares.items()}


def _machine(outcome: Outcome) -> Row:
    """Return the resources used by server and client between the first and the last sample after the warm-up."""
    samples = [each for each in outcome.samples if outcome.warm <= each.time <= outcome.ended]
    if len(samples) < 2:
        return {}
    first, last = samples[0], samples[-1]
    seconds = last.time - first.time
    more = {name: last.values[name] - value for name, value in first.values.items() if name in last.values}
    passes, cpu = more["redraft_pass_seconds_count"], more.get("process_cpu_seconds_total")
    held, grown = [each.megabytes for each in samples if each.megabytes is not None], memory_slope(samples)
    return {
        "target_passes": int(passes),
        "lanes_a_pass": round(more["redraft_pass_requests_sum"] / passes, 2) if passes else None,
        "server_cpu": None if cpu is None else round(cpu / seconds, 3),
        "client_cpu": round((last.client_cpu - first.client_cpu) / seconds, 3),
        "server_mb": round(max(held), 1) if held else None,
        "server_mb_slope": None if grown is None else round(grown, 3),
        "slots_in_use": max(each.held["slots"] for each in samples),
    }


def beyond(row: Row, max_p95: float | None, max_slope: float | None) -> list[str]:
    """Return the bounds that a run exceeds, as a sentence each."""
    found = [
        f"{row[name]} {words}"
        for name, words in (
            ("broken", "sessions ended before their time"),
            ("unanswered", "updates were not answered"),
            ("left_over", "sessions, lanes and slots were not given back"),
        )
        if row[name]
    ]
    for name, most, scale, words in (
        ("caption_lag_p95_ms", max_p95, 1e3, "p95 of the caption lag is {:.0f} ms, over {:.0f}"),
        ("server_mb_slope", max_slope, 1.0, "the server grows by {:.2f} MB a minute, over {:.2f}"),
    ):
        value = row.get(name)
        if most is None:
            continue
        if not isinstance(value, int | float):
            found.append(f"{name} was not measured: the run is too short, or the server does not tell it")
        elif value > scale * most:
            found.append(words.format(value, scale * most))
    return found
