"""The lag from the end of a word in the audio to its caption, in seconds.

The units of a final caption are spread evenly over the words of its source, so unit i of n belongs to the word at i/n
of the utterance.  A unit is *first shown* with the first update after which as many units are shown, and shown *for
good* with the update that last changed it.  If the ends of words are unknown (`Segment.ends`), a word ends with the
first update that has so many words: the lag is then that behind the recogniser.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from redraft.captions.words import WORD
from redraft_bench.eval.bootstrap import percentile_interval
from redraft_bench.eval.delays import changes, pairs
from redraft_bench.eval.figures import Row
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Segment, Stream


def caption_lags(record: Record, segment: Segment, language: str) -> list[tuple[float, float]]:
    """Return the lags of each unit of a segment's final caption: first shown, and for good.

    Returns:
        The lags in seconds; empty if an update has no time, or the source has no words.
    """
    times = [step.time for step in record.steps if step.time is not None]
    ends = segment.ends or _sent(segment)
    if len(times) < len(record.steps) or not ends:
        return []
    first: list[float] = []
    good: list[float] = []
    for time, change in zip(times, changes(record, language), strict=True):
        good[len(good) - len(change.erased) :] = [time] * len(change.added)
        first += [time] * (len(good) - len(first))
    words = [ends[-(-(place + 1) * len(ends) // len(good)) - 1] for place in range(len(good))]  # in whole numbers
    return [(shown - end, last - end) for shown, last, end in zip(first, good, words, strict=False)]


def _sent(segment: Segment) -> list[float]:
    """Return the time of the first update that has as many words, for each word of the final text."""
    found: list[float] = []
    for update in segment.updates:
        if update.time is None:
            return []
        found += [update.time] * (sum(1 for _ in WORD.finditer(update.text)) - len(found))
    return found[: sum(1 for _ in WORD.finditer(segment.source))]


def caption_lag_figures(records: Sequence[Record], stream: Stream, language: str, seed: int = 0) -> Row:
    """Return the medians of both lags with 95% intervals, by bootstrap over segments; None without times."""
    lags = [caption_lags(record, segment, language) for record, segment in pairs(records, stream)]
    row: Row = {}
    for which, name in enumerate(("lag_first", "lag_good")):
        values = [np.array([lag[which] for lag in each]) for each in lags if each]
        row[name] = round(float(np.median(np.concatenate(values))), 3) if values else None
        if values:
            low, high = percentile_interval(values, 50, seed=seed)
            row |= {f"{name}_low": round(low, 3), f"{name}_high": round(high, 3)}
    return row
