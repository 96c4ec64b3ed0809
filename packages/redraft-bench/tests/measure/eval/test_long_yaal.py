"""LongYAAL by OmniSTEval, from records, against the formula by hand."""

from __future__ import annotations

import pytest

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, by_chance, record, segment_of
from redraft.errors import InputError, MissingExtra
from redraft_bench.eval import long_yaal as module
from redraft_bench.eval.long_yaal import long_yaal
from redraft_bench.eval.stream import Stream

close = pytest.approx


def test_golden_case() -> None:
    found = long_yaal([GOLDEN], GOLDEN_STREAM, "de")
    # Delays 1, 2, 2, 3 s; the last comes with the end of the recording, so it does not count.
    assert found.lag == close((1 + 2 - 0.75 + 2 - 1.5) / 3)


def test_units_after_end() -> None:
    first, second = record(0, ["eins zwei"], times=[2.0]), record(1, ["drei vier"], times=[3.0])
    segments = (
        segment_of(first, "eins zwei", "de", (0.0, 1.0), "talk"),
        segment_of(second, "drei vier", "de", (1.0, 3.5), "talk"),
    )
    found = long_yaal([first, second], Stream("any", segments), "de")
    assert found.lag == close(((2 + 2 - 0.5) / 2 + (2 + 2 - 1.25) / 2) / 2)
    assert found.chrf == close(100)


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_languages_without_spaces_are_scored_by_character(language: str) -> None:
    found = long_yaal(*by_chance(10, language, timed=True), language)
    assert found.lag > 0
    assert found.bleu > 5


def test_what_it_cannot_score_is_one_sentence() -> None:
    bare = Stream("any", (segment_of(GOLDEN, None, "de", (0.0, 3.0)),))
    with pytest.raises(InputError, match="^OmniSTEval cannot score these captions: [^\n]+$"):
        long_yaal([GOLDEN], bare, "de")


def test_without_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'redraft-bench\[omnisteval\]'"):
        long_yaal([GOLDEN], GOLDEN_STREAM, "de")
