"""What a reader notices: the lag from a word in the audio to its caption, and retracted words.

The units of a final caption are spread evenly over the words of its source, so unit i of n belongs to the word at i/n
of the utterance.  A unit is *first shown* with the first update after which as many units are shown, and shown *for
good* with the update that last changed it.  If the ends of words are unknown (`Segment.ends`), a word ends with the
first update that has so many words: the lag is then that behind the recogniser.

A word that was shown and is not in the next caption at its place, nor in front of it, counts as retracted; one that
only gets other punctuation or case does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from redraft.captions.words import WORD, bare
from redraft.decoding.types import common_prefix
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
    """Return the medians of both lags with 95% intervals, by bootstrap over segments; None without times.

    With times also ``stood``, the share of the units of final captions that never changed once they were shown, and
    ``retracted``, the words retracted per minute of speech.
    """
    lags = [caption_lags(record, segment, language) for record, segment in pairs(records, stream)]
    row: Row = {}
    for which, name in enumerate(("lag_first", "lag_good")):
        values = [np.array([lag[which] for lag in each]) for each in lags if each]
        row[name] = round(float(np.median(np.concatenate(values))), 3) if values else None
        if values:
            low, high = percentile_interval(values, 50, seed=seed)
            row |= {f"{name}_low": round(low, 3), f"{name}_high": round(high, 3)}
    units = [first == good for each in lags for first, good in each]
    minutes = sum(_seconds(segment) for _, segment in pairs(records, stream)) / 60
    row["stood"] = round(sum(units) / len(units), 4) if units else None
    row["retracted"] = round(sum(map(retracted, records)) / minutes, 2) if units and minutes else None
    return row


def retracted(record: Record) -> int:
    """Return how many words the captions of a segment retracted."""
    count, before = 0, list[str]()
    for step in record.steps:
        after = [word for each in WORD.findall(step.text) if (word := bare(each))]
        count += len(before) - common_prefix(before, after)
        before = after
    return count


def _seconds(segment: Segment) -> float:
    """Return how long a segment was spoken; 0 if that is unknown."""
    times = [time for each in segment.updates if (time := each.time) is not None]
    start, end = segment.start, segment.end
    if start is None or end is None:
        return times[-1] - times[0] if times else 0.0
    return end - start
