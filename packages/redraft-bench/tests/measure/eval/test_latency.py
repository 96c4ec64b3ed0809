"""Differentiable average lagging: the formula by hand, properties that it must have, and figures of records."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omnisteval import scoring

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, by_chance, record, segment_of
from redraft.errors import InputError
from redraft_bench.eval.delays import delays as delays_of
from redraft_bench.eval.delays import split, words
from redraft_bench.eval.latency import dal, lags, latency_figures
from redraft_bench.eval.stream import Stream

DELAYS = st.lists(st.floats(0, 50), min_size=1, max_size=20).map(sorted)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_who_waits_for_k_words_lags_by_k_words(k: int) -> None:
    assert dal([float(min(k + index, 10)) for index in range(10)], 10) == pytest.approx(k)


def test_nothing_is_shown_faster_than_pace() -> None:
    # Pace 1: shown at 3, 4, 5, 6 though all was there at 3.
    assert dal([3, 3, 3, 3], 4) == 3
    assert dal([1, 1, 4, 4], 4) == pytest.approx((1 + (2 - 1) + (4 - 2) + (5 - 3)) / 4)
    assert dal([6.0] * 4, 6) == pytest.approx(6)  # who waits for the end lags by the source
    assert dal([9.0, 9.0], 4) == 9  # what is shown after the end counts in full


@given(DELAYS, st.floats(0.5, 60), st.floats(0, 10))
def test_what_comes_later_lags_more(delays: list[float], source: float, later: float) -> None:
    moved = [delay + later for delay in delays]
    first, second = dal(delays, source), dal(moved, source)
    assert first is not None
    assert second == pytest.approx(first + later)


def test_golden_case() -> None:
    row = latency_figures([GOLDEN], GOLDEN_STREAM, "de", seed=0)
    # Delays 1, 2, 2, 3 s, or 1.1, 2.2, 2.2, 3.1 s with computing, at a pace of 0.75 s.
    lag, aware = (1 + (2 - 0.75) + (2.75 - 1.5) + (3.5 - 2.25)) / 4, (1.1 + (2.2 - 0.75) * 3) / 4
    assert row == {"latency_unit": "seconds", "dal": round(lag, 4), "dal_ca": round(aware, 4)} | {
        "dal_low": round(lag, 4),
        "dal_high": round(lag, 4),
    }


def test_words_for_stream_without_times() -> None:
    made = record(0, ["a b", "a b c d"], sources=["one two", "one two three four"])
    row = latency_figures([made], Stream("any", (segment_of(made, "a b c d", "de"),)), "de")
    assert row == {"latency_unit": "words", "dal": (2 + 2 + 2 + 2) / 4, "dal_ca": None}


def test_segments_without_place_or_translation_are_left_out() -> None:
    placed, lost, empty = record(0, ["a"], times=[2.0]), record(1, ["b"], times=[50.0]), record(2, [""], times=[60.0])
    spans = ((1.0, 2.0), None, (50.0, 60.0))
    made = [segment_of(each, "a", "de", span) for each, span in zip((placed, lost, empty), spans, strict=True)]
    assert lags([placed, lost, empty], Stream("any", tuple(made)), "de") == {"dal": [1.0], "dal_ca": [1.0]}


def test_waiting_makes_lag() -> None:
    records, stream = by_chance(20, "de", timed=True)
    slow = [replace(each, steps=tuple(replace(step, seconds=9.0) for step in each.steps)) for each in records]
    quick, late = (latency_figures(each, stream, "de") for each in (records, slow))
    assert quick["dal"] == late["dal"]
    assert float(late["dal_ca"] or 0) > float(quick["dal_ca"] or 0)


def test_half_timed_stream_is_refused() -> None:
    timed, untimed = record(0, ["a"], times=[1.0]), record(1, ["b"])
    stream = Stream("mixed", (segment_of(timed, "a", "de", (0.0, 1.0)), segment_of(untimed, "b", "de")))
    with pytest.raises(InputError, match="'mixed' must all have a time, or none"):
        latency_figures([timed, untimed], stream, "de")


@pytest.mark.parametrize("language", ["de", "zh"])
@pytest.mark.parametrize("timed", [False, True])
def test_omnisteval_gives_same_figures(language: str, timed: bool) -> None:
    records, stream = by_chance(100, language, timed=timed)
    theirs = []
    for segment, each in zip(stream.segments, delays_of(records, stream, language), strict=True):
        start = segment.start or 0.0
        length = (segment.end or 0.0) - start if timed else float(words(segment.source))
        reference = split(segment.references[language], language)
        emission = [tuple(time - start for time in times) for times in (each.delays, each.shown)]
        theirs.append(
            SimpleNamespace(
                emission_cu=emission[0],
                emission_ca=emission[1],
                source_length=length,
                reference=reference,
                reference_length=len(reference),
            )
        )
    ours = lags(records, stream, language)
    for aware in (False, True)[: 1 + timed]:
        values = ours["dal_ca" if aware else "dal"]
        assert 0 < len(values) < 100  # an empty translation has no lag
        assert scoring.DALScorer(computation_aware=aware)(theirs) == pytest.approx(sum(values) / len(values))
