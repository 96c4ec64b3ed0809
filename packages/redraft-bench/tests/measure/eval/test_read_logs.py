"""Logs of other systems: what is written as one and read again has the same figures, and what is broken is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, by_chance
from redraft.errors import InputError
from redraft_bench.eval.logs import write_simuleval, write_simulstream
from redraft_bench.eval.read_logs import read_log
from redraft_bench.eval.timing import METRICS, latency_figures, unit_erasure

close = pytest.approx


@pytest.mark.parametrize("language", ["de", "zh"])
@pytest.mark.parametrize("timed", [False, True])
def test_simuleval_log(tmp_path: Path, language: str, timed: bool) -> None:
    records, stream = by_chance(30, language, timed=timed)
    write_simuleval(tmp_path, records, stream, language)
    found = latency_figures(*read_log(tmp_path / "instances.log", language), language)
    expected = latency_figures(records, stream, language)
    for name in METRICS:
        assert found[name] == close(expected[name], abs=2e-3), name
        if timed:
            assert found[f"{name}_ca"] == close(expected[f"{name}_ca"], abs=2e-3), name
    assert found["latency_unit"] == expected["latency_unit"]
    assert found["ne_units"] == 0  # nothing is ever taken back in such a log


@pytest.mark.parametrize("language", ["de", "ja"])
def test_simulstreams_log_has_erasure_of_records(tmp_path: Path, language: str) -> None:
    records, stream = by_chance(30, language, timed=True)
    write_simulstream(tmp_path, records, stream, language)
    found, read = read_log(tmp_path / "metrics.jsonl", language)
    assert len(found) == len({segment.recording for segment in stream.segments}) < len(records)
    # Between two segments of a recording the log takes nothing back, as the records do.
    assert "".join(found[0].translation.split()).endswith(
        "".join(
            [r for r, s in zip(records, stream.segments, strict=True) if s.recording == stream.segments[0].recording][
                -1
            ].translation.split()
        )
    )
    assert read.segments[0].end == found[0].steps[-1].time


def test_golden_case_by_simulstream(tmp_path: Path) -> None:
    write_simulstream(tmp_path, [GOLDEN], GOLDEN_STREAM, "de")
    records, _stream = read_log(tmp_path / "metrics.jsonl", "de")
    assert unit_erasure(records, "de") == unit_erasure([GOLDEN], "de") == 0.5
    assert [step.text for step in records[0].steps] == [step.text for step in GOLDEN.steps]


def test_pieces_of_simulstream_are_joined(tmp_path: Path) -> None:
    update = {"id": 0, "total_audio_processed": 1.0, "computation_time": 0.1, "deleted_tokens": []}
    rows = [{**update, "generated_tokens": ["\u2581Zur", "\u00fcck"]}]
    rows.append(
        {**update, "total_audio_processed": 2, "generated_tokens": ["\u2581in"], "deleted_tokens": ["\u00fcck"]}
    )
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [step.text for step in read_log(log, "de")[0][0].steps] == ["Zur\u00fcck", "Zur in"]


LINE: dict[str, Any] = {"source": ["a.wav", "16 kHz"], "source_length": 4000.0, "prediction": "Ich bin da"}
LINE |= {"delays": [1000.0, 2000.0, 4000.0], "elapsed": [1100.0, 2300.0, 4050.0], "reference": "Ich bin hier"}


def written(path: Path, **changes: object) -> Path:
    row = {name: value for name, value in {**LINE, **changes}.items() if value is not None}
    (path / "instances.log").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return path / "instances.log"


def test_figures_by_hand(tmp_path: Path) -> None:
    row = latency_figures(*read_log(written(tmp_path), "de"), "de")
    pace = 4 / 3
    assert row["yaal"] == close((1 + 2 - pace) / 2, abs=1e-4)
    assert row["laal"] == row["mean_lag"] == close((1 + 2 - pace + 4 - 2 * pace) / 3, abs=1e-4)
    assert row["yaal_ca"] == close((1.1 + 2.3 - pace) / 2, abs=1e-4)
    assert (row["latency_unit"], row["ne_units"]) == ("seconds", 0)


def test_references_of_file_take_place_of_logs(tmp_path: Path) -> None:
    log = written(tmp_path, elapsed=None)
    _records, stream = read_log(log, "de", ["Ich bin jetzt hier bei dir"])
    assert dict(stream.segments[0].references) == {"de": "Ich bin jetzt hier bei dir"}
    with pytest.raises(InputError, match=r"references must be as many as the segments of instances.log, 1: not 2"):
        read_log(log, "de", ["a", "b"])


def test_spaces_that_log_of_characters_counts(tmp_path: Path) -> None:
    log = written(tmp_path, prediction="\u4eca\u5929 \u597d", delays=[1, 2, 2, 3], elapsed=None)
    (record,), _stream = read_log(log, "zh")
    assert [step.time for step in record.steps] == [0.001, 0.002, 0.003]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delays": [1.0]}, "delays must have a number for each of the 3 units, not 1"),
        ({"delays": "soon"}, "delays must be a list of numbers"),
        ({"elapsed": [1, True, 3]}, "elapsed must be a list of numbers"),
        ({"source_length": None}, "source_length must be a number"),
        ({"prediction": 3}, "prediction must be a string"),
    ],
)
def test_broken_lines_are_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=f"^instances.log, line 1: {message}"):
        read_log(written(tmp_path, **changes), "de")


@pytest.mark.parametrize(("text", "message"), [("{", "this is not valid JSON"), ("[]", "a line must be an object")])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "instances.log"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_log(path, "de")
    path.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="contains no segment"):
        read_log(path, "de")
    with pytest.raises(InputError, match="nosuch.log cannot be read: No such file"):
        read_log(tmp_path / "nosuch.log", "de")
