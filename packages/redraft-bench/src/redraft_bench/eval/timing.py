"""Latency figures of the lines of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from redraft.captions.languages import parse_language
from redraft.errors import InputError
from redraft_bench.eval.bootstrap import interval, ratio
from redraft_bench.eval.delays import Delays, changes, delays, pairs, split, words
from redraft_bench.eval.figures import Row, percentile_ms
from redraft_bench.eval.latency import dal, laal
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Segment, Stream

METRICS = ("laal", "dal")


@dataclass(frozen=True, slots=True)
class Instance:
    """The captions of a single segment.

    Attributes:
        timed: whether ``delays`` and ``source`` are in seconds rather than source words.
        units: words or characters of the translation.
        delays: delay of each unit, from the start of the segment.
        shown: computation-aware delays; empty if untimed.
        source: |X|.
        reference: units of the reference; None if there is none.
    """

    timed: bool
    units: tuple[str, ...]
    delays: tuple[float, ...]
    shown: tuple[float, ...]
    source: float
    reference: tuple[str, ...] | None

    def metrics(self) -> dict[str, float | None]:
        """Compute `METRICS` and, if the segment is timed, their computation-aware versions (``_ca``).

        None if undefined.

        A translation without a reference is measured against its own length.
        """
        length = len(self.units if self.reference is None else self.reference)
        found = {}
        for suffix, times in (("", self.delays), ("_ca", self.shown)) if self.timed else (("", self.delays),):
            found["laal" + suffix] = laal(times, self.source, length)
            found["dal" + suffix] = dal(times, self.source)
        return found


def instances(records: Sequence[Record], stream: Stream, language: str) -> list[Instance | None]:
    """Convert each record to an instance; None for a segment of a timed stream without start and end.

    Raises:
        InputError: the records are from another stream, or the stream is only partly timed.
    """
    return _instances(records, stream, language, _delays(records, stream, language))


def _delays(records: Sequence[Record], stream: Stream, language: str) -> list[Delays]:
    found = delays(records, stream, language)
    if len({each.timed for each in found}) > 1:
        raise InputError(f"updates of {stream.name!r} must all have a time, or none")
    return found


def _instances(
    records: Sequence[Record], stream: Stream, language: str, captions: Sequence[Delays]
) -> list[Instance | None]:
    code = parse_language(language).code
    found: list[Instance | None] = []
    for (_, segment), caption in zip(pairs(records, stream), captions, strict=True):
        text = segment.references.get(code)
        reference = None if text is None else tuple(split(text, language))
        span = _span(segment) if caption.timed else (0.0, float(words(segment.source)))
        if span is None:
            found.append(None)
            continue
        start, length = span
        since = [tuple(each - start for each in times) for times in (caption.delays, caption.shown)]
        found.append(Instance(caption.timed, caption.units, since[0], since[1], length, reference))
    return found


def _span(segment: Segment) -> tuple[float, float] | None:
    """Return start and duration in seconds if known."""
    if segment.start is None or segment.end is None:
        return None
    return segment.start, segment.end - segment.start


def latency_figures(
    records: Sequence[Record], stream: Stream, language: str, interval_of_dal: int | None = None
) -> Row:
    """Compute the lag of one contender's records: means over the segments for which a metric is defined.

    They are in source words or, for a timed stream, in seconds (``latency_unit``).  Names with ``_ca`` are
    computation-aware.  ``lag_p50_ms`` and ``lag_p95_ms`` are times from an update to its answer, including the wait for
    earlier updates.  ``ne_units`` is pooled NE of the display in words or characters.  Undefined metrics are None.
    With ``interval_of_dal``, a random seed, the row has the 95% interval of DAL if that is defined.

    Raises:
        InputError: the records are from another stream, or the stream is only partly timed.
    """
    captions = _delays(records, stream, language)
    values = [each.metrics() for each in _instances(records, stream, language, captions) if each is not None]
    lags = [answer - came for each in captions for came, answer in zip(each.arrivals, each.answers, strict=True)]
    row: Row = {"latency_unit": "seconds" if lags else "words"}
    for name in (*METRICS, *(f"{metric}_ca" for metric in METRICS)):
        defined = [value for each in values if (value := each.get(name)) is not None]
        row[name] = round(fmean(defined), 4) if defined else None
    for share in (50, 95):
        row[f"lag_p{share}_ms"] = percentile_ms(lags, share)
    row["ne_units"] = round(unit_erasure(records, language), 4)
    dals = [[value, 1.0] for each in values if (value := each["dal"]) is not None]
    if dals and interval_of_dal is not None:
        low, high = interval(dals, ratio, seed=interval_of_dal)
        row |= {"dal_low": round(low, 4), "dal_high": round(high, 4)}
    return row


def unit_erasure(records: Sequence[Record], language: str) -> float:
    """Return pooled normalized erasure of the display in words or characters; 0 if nothing was shown."""
    edits = [change for record in records for change in changes(record, language)]
    erased = sum(len(change.erased) for change in edits)
    final = sum(len(change.added) for change in edits) - erased
    return erased / final if final else 0.0
