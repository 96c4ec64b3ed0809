"""Figures of latency, from records and stream."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, by_chance, record, segment_of
from redraft.errors import InputError
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.timing import instances, latency_figures, unit_erasure


def test_golden_case() -> None:
    row = latency_figures([GOLDEN], GOLDEN_STREAM, "de")
    assert row["latency_unit"] == "seconds"
    assert row["ne_units"] == 0.5
    assert row["laal"] == 0.875
    assert row["laal_ca"] == 1.025
    assert row["lag_p50_ms"] == 100.0
    assert row["lag_p95_ms"] == 190.0


def test_words_for_stream_without_times() -> None:
    made = record(0, ["a b", "a b c d"], sources=["one two", "one two three four"])
    row = latency_figures([made], Stream("any", (segment_of(made, "a b c d", "de"),)), "de")
    assert row["latency_unit"] == "words"
    assert row["laal"] == round((2 + 1 + 2) / 3, 4)
    assert {name for name, value in row.items() if value is None} == {"laal_ca", "dal_ca", "lag_p50_ms", "lag_p95_ms"}


def test_delays_count_from_start_of_segment() -> None:
    made = record(0, ["a", "a b"], times=[11.0, 12.0], seconds=[0.5, 0.5])
    (found,) = instances([made], Stream("any", (segment_of(made, "x y z", "de", (10.0, 12.0)),)), "de")
    assert found is not None
    assert (found.delays, found.shown, found.source) == ((1.0, 2.0), (1.5, 2.5), 2.0)
    assert found.reference == ("x", "y", "z")


def test_segment_without_place() -> None:
    placed, lost = record(0, ["a"], times=[2.0]), record(1, ["b"], times=[50.0])
    stream = Stream("any", (segment_of(placed, "a", "de", (1.0, 2.0)), segment_of(lost, "b", "de")))
    assert instances([placed, lost], stream, "de")[1] is None
    assert latency_figures([placed, lost], stream, "de")["laal"] == 1.0


def test_empty_translation_is_left_out_of_means() -> None:
    empty, other = record(0, ["a", ""]), record(1, ["a"], sources=["one two"])
    stream = Stream("any", (segment_of(empty, "a", "de"), segment_of(other, "a", "de")))
    assert latency_figures([empty, other], stream, "de")["laal"] == 2.0
    assert latency_figures([empty], stream, "de")["laal"] is None
    assert unit_erasure([empty], "de") == 0.0


def test_waiting_makes_lag() -> None:
    records, stream = by_chance(20, "de", timed=True)
    slow = [replace(each, steps=tuple(replace(step, seconds=9.0) for step in each.steps)) for each in records]
    quick, late = (latency_figures(each, stream, "de") for each in (records, slow))
    assert quick["laal"] == late["laal"]
    for name in ("laal_ca", "dal_ca", "lag_p50_ms"):
        assert float(late[name] or 0) > float(quick[name] or 0)


def test_half_timed_stream_is_refused() -> None:
    timed, untimed = record(0, ["a"], times=[1.0]), record(1, ["b"])
    stream = Stream("mixed", (segment_of(timed, "a", "de", (0.0, 1.0)), segment_of(untimed, "b", "de")))
    with pytest.raises(InputError, match="'mixed' must all have a time, or none"):
        latency_figures([timed, untimed], stream, "de")


@pytest.mark.parametrize("language", ["de", "zh"])
@pytest.mark.parametrize("timed", [False, True])
def test_omnisteval_gives_same_figures(language: str, timed: bool) -> None:
    scoring = pytest.importorskip("omnisteval.scoring", reason="the omnisteval extra is not installed")
    records, stream = by_chance(100, language, timed=timed)
    found = [each for each in instances(records, stream, language) if each is not None]
    theirs = [
        SimpleNamespace(
            emission_cu=each.delays,
            emission_ca=each.shown,
            source_length=each.source,
            reference=each.reference,
            reference_length=len(each.reference or ()),
        )
        for each in found
    ]
    assert len(found) == 100
    for aware in (False, True)[: 1 + timed]:
        for name, scorer in (("laal", scoring.LAALScorer), ("dal", scoring.DALScorer)):
            values = [value for each in found if (value := each.metrics()[name + "_ca" * aware]) is not None]
            assert 0 < len(values) < 100  # an empty translation has no lag
            assert scorer(computation_aware=aware)(theirs) == pytest.approx(sum(values) / len(values))
