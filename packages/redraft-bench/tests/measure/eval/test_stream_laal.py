"""StreamLAAL: the captions of a recording, cut to fit its reference segments."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, record, segment_of
from redraft.errors import InputError, MissingExtra
from redraft_bench.eval import stream_laal as module
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.stream_laal import stream_laal

needs_mweralign = pytest.mark.skipif(find_spec("mweralign") is None, reason="mweralign is not installed")


@needs_mweralign
def test_golden_case() -> None:
    found = stream_laal([GOLDEN], GOLDEN_STREAM, "de")
    assert found.ideal == 0.875
    assert found.computation_aware == pytest.approx(1.025, abs=1e-15)


@needs_mweralign
def test_cuts_are_not_utterances() -> None:
    first = record(0, ["eins zwei drei vier"], times=[2.0])
    second = record(1, ["fünf sechs"], times=[3.0])
    segments = (
        segment_of(first, "eins zwei", "de", (0.0, 1.0), "talk"),
        segment_of(second, "drei vier fünf sechs", "de", (1.0, 3.0), "talk"),
    )
    # The second reference segment gets "drei vier" after 1 s and "fünf sechs" after 2 s of 2 s.
    found = stream_laal([first, second], Stream("any", segments), "de")
    assert found == ((2.0 + (1 + 0.5 + 1) / 3) / 2,) * 2


@needs_mweralign
def test_recordings_are_cut_one_by_one() -> None:
    first, second = record(0, ["eins zwei"], times=[2.0]), record(1, ["eins zwei"], times=[4.0])
    segments = tuple(
        segment_of(each, "eins zwei", "de", (0.0, 2.0), name) for each, name in ((first, "a"), (second, "b"))
    )
    assert stream_laal([first, second], Stream("any", segments), "de").ideal == (2.0 + 4.0) / 2


@needs_mweralign
def test_reference_without_caption() -> None:
    first, second = record(0, ["eins zwei"], times=[2.0]), record(1, [""], times=[4.0])
    segments = (
        segment_of(first, "eins zwei", "de", (0.0, 2.0), "talk"),
        segment_of(second, "drei", "de", (2.0, 4.0), "talk"),
    )
    assert stream_laal([first, second], Stream("any", segments), "de") == (2.0, 2.0)


@needs_mweralign
def test_captions_without_references() -> None:
    first, second = record(0, ["eins zwei drei"], times=[2.0]), record(1, ["vier"], times=[4.0])
    segments = (
        segment_of(first, "eins zwei drei vier", "de", (0.0, 4.0), "talk"),
        segment_of(second, None, "de", None, "talk"),
    )
    assert stream_laal([first, second], Stream("any", segments), "de").ideal == pytest.approx((2 + 1 + 0 + 1) / 4)


@needs_mweralign
def test_nothing_to_score_is_refused() -> None:
    empty = record(0, [""], times=[1.0])
    with pytest.raises(InputError, match="needs captions; those of 'any' in de are empty"):
        stream_laal([empty], Stream("any", (segment_of(empty, "eins", "de", (0.0, 1.0)),)), "de")


def test_library_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'packages/redraft-bench\[stream-laal\]'"):
        stream_laal([GOLDEN], GOLDEN_STREAM, "de")
