"""Lags from the end of a word to its caption, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from measure.eval.recorded import GOLDEN, record, segment_of
from redraft.errors import InputError
from redraft_bench.eval.caption_lag import caption_lag_figures, caption_lags, retracted
from redraft_bench.eval.stream import Stream

#: "I have" is corrected to "I had" with the last update.
MADE = record(
    0,
    ["Ich", "Ich habe", "Ich hatte das"],
    sources=["I", "I have", "I had that"],
    times=[1.0, 2.0, 3.0],
)
SEGMENT = segment_of(MADE, None, "de")


def test_ends_of_words() -> None:
    lags = caption_lags(MADE, replace(SEGMENT, ends=(0.5, 1.0, 2.5)), "de")
    assert lags == [(0.5, 0.5), (1.0, 2.0), (0.5, 0.5)]


def test_behind_recogniser() -> None:
    assert caption_lags(MADE, SEGMENT, "de") == [(0.0, 0.0), (0.0, 1.0), (0.0, 0.0)]


def test_more_units_than_words() -> None:
    made = record(0, ["a b c d"], sources=["x y"], times=[3.0])
    assert [first for first, _ in caption_lags(made, replace(segment_of(made, None, "de"), ends=(1.0, 2.0)), "de")] == [
        *(2.0, 2.0, 1.0, 1.0)
    ]


def test_as_many_units_as_words() -> None:
    """Each unit belongs to its own word, also where 7 / 25 * 25 is more than 7."""
    ends = tuple(map(float, range(1, 26)))
    made = record(0, [" ".join("a" * 25)], sources=[" ".join("x" * 25)], times=[30.0])
    lags = caption_lags(made, replace(segment_of(made, None, "de"), ends=ends), "de")
    assert [first for first, _ in lags] == [30.0 - end for end in ends]


def test_without_times() -> None:
    made = record(0, ["a"])
    assert caption_lags(made, segment_of(made, None, "de"), "de") == []
    assert caption_lag_figures([made], Stream("s", (segment_of(made, None, "de"),)), "de") == {
        "lag_first": None,
        "lag_good": None,
        "stood": None,
        "retracted": None,
    }


def test_words_retracted() -> None:
    texts = ["Ich habe", "Ich habe einen", "Ich hatte einen Hund", "ich hatte einen Hund.", "Wir hatten"]
    made = record(0, texts, times=[1.0, 2.0, 3.0, 4.0, 31.0])
    assert retracted(made) == 2 + 4  # "habe einen"; case and punctuation do not count
    figures = caption_lag_figures([made], Stream("s", (segment_of(made, None, "de"),)), "de")
    assert figures["retracted"] == pytest.approx(6 / 0.5)
    assert figures["stood"] == 0.0


def test_figures() -> None:
    row = caption_lag_figures([MADE], Stream("s", (SEGMENT,)), "de")
    assert row["lag_first"] == 0.0 and row["lag_good"] == 0.0
    assert row["lag_good_low"] == row["lag_good_high"] == 0.0  # one segment


def test_time_for_each_word() -> None:
    with pytest.raises(InputError, match="ends must be 4 times, one for each word of the final text, not 1"):
        replace(segment_of(GOLDEN, None, "de"), ends=(1.0,))
