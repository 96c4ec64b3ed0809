"""LongYAAL by OmniSTEval, from records and from files, and against the formula by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, by_chance, record, segment_of
from redraft.errors import InputError, MissingExtra
from redraft_bench.eval import long_yaal as module
from redraft_bench.eval.long_yaal import long_yaal, score_log
from redraft_bench.eval.stream import Stream

close = pytest.approx


def test_golden_case() -> None:
    pytest.importorskip("omnisteval", reason="the omnisteval extra is not installed")
    found = long_yaal([GOLDEN], GOLDEN_STREAM, "de")
    # Delays 1, 2, 2, 3 s; the last comes with the end of the recording, so it does not count.
    assert found.ideal == close((1 + 2 - 0.75 + 2 - 1.5) / 3)
    assert found.computation_aware == close((1.1 + 2.2 - 0.75 + 2.2 - 1.5) / 3)


def test_units_after_end() -> None:
    pytest.importorskip("omnisteval", reason="the omnisteval extra is not installed")
    first, second = record(0, ["eins zwei"], times=[2.0]), record(1, ["drei vier"], times=[3.0])
    segments = (
        segment_of(first, "eins zwei", "de", (0.0, 1.0), "talk"),
        segment_of(second, "drei vier", "de", (1.0, 3.5), "talk"),
    )
    found = long_yaal([first, second], Stream("any", segments), "de")
    assert found.ideal == close(((2 + 2 - 0.5) / 2 + (2 + 2 - 1.25) / 2) / 2)
    assert found.chrf == close(100)


def test_whole_recordings(tmp_path: Path) -> None:
    pytest.importorskip("omnisteval", reason="the omnisteval extra is not installed")
    words = "Hallo , ich bin Elena . Wir sprechen heute über Wörter .".split()
    delays = [1500.0 + 500 * number for number in range(len(words))]
    line = {"source": ["talks/a.wav"], "prediction": " ".join(words), "delays": delays, "source_length": 9000}
    (tmp_path / "instances.log").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (tmp_path / "segments.yaml").write_text(
        "- {wav: a.wav, offset: 0.5, duration: 3.0}\n- {wav: a.wav, offset: 4.0, duration: 4.0}\n", encoding="utf-8"
    )
    (tmp_path / "references.txt").write_text(
        "Hallo , ich bin Elena .\nWir sprechen heute über Wörter .\n", encoding="utf-8"
    )
    found = score_log(tmp_path / "instances.log", tmp_path / "segments.yaml", tmp_path / "references.txt", "de")
    lags = [
        sum((delay / 1000 - start) - index * length / 6 for index, delay in enumerate(part)) / 6
        for part, start, length in ((delays[:6], 0.5, 3.0), (delays[6:], 4.0, 4.0))
    ]
    assert found.ideal == close(sum(lags) / 2)
    assert found.computation_aware is None
    assert found.bleu == close(100)


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_languages_without_spaces_are_scored_by_character(language: str) -> None:
    pytest.importorskip("omnisteval", reason="the omnisteval extra is not installed")
    found = long_yaal(*by_chance(10, language, timed=True), language)
    assert found.computation_aware is not None
    assert 0 < found.ideal < found.computation_aware
    assert found.bleu > 5


def test_what_it_cannot_score_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("omnisteval", reason="the omnisteval extra is not installed")
    for name in ("instances.log", "segments.yaml", "references.txt"):
        (tmp_path / name).write_text("[]\n", encoding="utf-8")
    with pytest.raises(InputError, match="^OmniSTEval cannot score instances.log: [^\n]+$"):
        score_log(tmp_path / "instances.log", tmp_path / "segments.yaml", tmp_path / "references.txt", "de")


def test_without_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'packages/redraft-bench\[omnisteval\]'"):
        long_yaal([GOLDEN], GOLDEN_STREAM, "de")
