"""Differentiable average lagging of captions, in source words or, for a timed stream, in seconds.

A delay is how much of the source had been read when a unit of the translation last changed
(`redraft_bench.eval.delays`).  Computation-aware lag uses the times at which units were shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from redraft.errors import InputError
from redraft_bench.eval.bootstrap import interval, ratio
from redraft_bench.eval.delays import delays, pairs, words
from redraft_bench.eval.figures import Row
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Stream


def dal(delays: Sequence[float], source: float) -> float | None:
    """Differentiable average lagging (Cherry and Foster 2019): units are shown no faster than at a steady pace.

    DAL = 1/|Y| sum_i [g_i - (i - 1) |X| / |Y|] with g_1 = d_1 and g_i = max(d_i, g_{i-1} + |X| / |Y|).

    Args:
        delays: d_1 .. d_|Y|, not descending; without any, DAL is undefined.
        source: |X|, in the unit of the delays.
    """
    if not delays:
        return None
    pace = source / len(delays)
    total, shown = 0.0, -math.inf
    for index, delay in enumerate(delays):
        shown = max(delay, shown + pace)
        total += shown - index * pace
    return total / len(delays)


def lags(records: Sequence[Record], stream: Stream, language: str) -> dict[str, list[float]]:
    """Return ``dal`` and, in a timed stream, the computation-aware ``dal_ca`` of each segment for which it is defined.

    It is undefined for an empty translation, and for a segment of a timed stream without start and end.

    Raises:
        InputError: the records are from another stream, or the stream is only partly timed.
    """
    captions = delays(records, stream, language)
    if len({each.timed for each in captions}) > 1:
        raise InputError(f"updates of {stream.name!r} must all have a time, or none")
    found: dict[str, list[float]] = {"dal": [], "dal_ca": []}
    for (_, segment), caption in zip(pairs(records, stream), captions, strict=True):
        start, end = (segment.start, segment.end) if caption.timed else (0.0, float(words(segment.source)))
        for name, times in (("dal", caption.delays), ("dal_ca", caption.shown)):
            if start is not None and end is not None:
                value = dal([time - start for time in times], end - start)
                found[name] += [] if value is None else [value]
    return found


def latency_figures(records: Sequence[Record], stream: Stream, language: str, seed: int | None = None) -> Row:
    """Return the means of `lags`, None if undefined, and their unit (``latency_unit``); raises as `lags`.

    With ``seed``, the row has the 95% interval of DAL if that is defined.
    """
    found = lags(records, stream, language)
    timed = any(update.time is not None for update in stream.updates)
    row: Row = {"latency_unit": "seconds" if timed else "words"}
    row |= {name: round(fmean(values), 4) if values else None for name, values in found.items()}
    if found["dal"] and seed is not None:
        low, high = interval([[value, 1.0] for value in found["dal"]], ratio, seed=seed)
        row |= {"dal_low": round(low, 4), "dal_high": round(high, 4)}
    return row
