"""The log for simulstream: what is in it, and that its scorers give Redraft's figures."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.eval.recorded import GOLDEN, GOLDEN_STREAM, by_chance
from redraft_bench.eval.logs import write_simulstream
from redraft_bench.eval.stream_laal import stream_laal
from redraft_bench.eval.timing import latency_figures, unit_erasure


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_golden_case_for_simulstream(tmp_path: Path) -> None:
    write_simulstream(tmp_path / "new", [GOLDEN], GOLDEN_STREAM, "de")
    assert lines(tmp_path / "new" / "metrics.jsonl") == [
        {"id": 0, "metadata": {"wav_name": "talk.1.wav"}},
        *(
            {
                "id": 0,
                "total_audio_processed": time,
                "computation_time": seconds,
                "generated_tokens": added,
                "deleted_tokens": erased,
            }
            for time, seconds, added, erased in (
                (1.0, 0.1, ["Ich", "bin"], []),
                (2.0, 0.2, ["habe", "einen", "Hund"], ["bin"]),
                (3.0, 0.1, ["Hunde."], ["Hund"]),
            )
        ),
    ]
    assert json.loads((tmp_path / "new" / "config.yaml").read_text(encoding="utf-8")) == {
        "detokenizer_type": "simuleval",
        "latency_unit": "word",
    }
    assert json.loads((tmp_path / "new" / "segments.yaml").read_text(encoding="utf-8")) == [
        {"wav": "talk.1.wav", "offset": 0.0, "duration": 3.0}
    ]
    assert (tmp_path / "new" / "references.txt").read_text(encoding="utf-8") == "Ich habe einen Hund.\n"


def test_updates_of_recording_have_one_id(tmp_path: Path) -> None:
    records, stream = by_chance(6, "ja", timed=True)
    write_simulstream(tmp_path, records, stream, "ja")
    found = lines(tmp_path / "metrics.jsonl")
    assert [line["metadata"]["wav_name"] for line in found if "metadata" in line] == [
        "2022.talk-0.wav",
        "2022.talk-1.wav",
    ]
    assert [line["id"] for line in found] == sorted(line["id"] for line in found)
    assert len(found) == 2 + sum(len(each.steps) for each in records)


@pytest.mark.parametrize("language", ["de", "zh"])
def test_simulstream_gives_same_figures(language: str, tmp_path: Path) -> None:
    reader = pytest.importorskip("simulstream.metrics.readers")
    stats = pytest.importorskip("simulstream.metrics.stats")
    scorers = pytest.importorskip("simulstream.metrics.scorers.latency")
    scorer = pytest.importorskip("simulstream.metrics.scorers.latency.stream_laal")
    config = pytest.importorskip("simulstream.config")
    records, stream = by_chance(100, language, timed=True)
    write_simulstream(tmp_path, records, stream, language)
    settings: SimpleNamespace = config.yaml_config(tmp_path / "config.yaml")
    log = reader.LogReader(settings, tmp_path / "metrics.jsonl", latency_unit=settings.latency_unit)

    erasure = stats.NormalizedErasure().compute(log)
    assert erasure > 0.2
    assert erasure == unit_erasure(records, language)
    assert latency_figures(records, stream, language)["ne_units"] == round(erasure, 4)

    places = reader.YamlReferenceReader(tmp_path / "segments.yaml", tmp_path / "references.txt")
    outputs = log.final_outputs_and_latencies()
    samples = [scorers.LatencyScoringSample(name, outputs[name], places.references[name]) for name in places.references]
    score = scorer.StreamLaal(Namespace(latency_unit=settings.latency_unit)).score(samples)
    found = stream_laal(records, stream, language)
    assert found.ideal == pytest.approx(score.ideal_latency, abs=1e-9)
    assert found.computation_aware > score.computational_aware_latency  # there no update waits for the one before it


def test_simulstream_and_golden_case(tmp_path: Path) -> None:
    reader = pytest.importorskip("simulstream.metrics.readers")
    write_simulstream(tmp_path, [GOLDEN], GOLDEN_STREAM, "de")
    log = reader.LogReader(
        SimpleNamespace(detokenizer_type="simuleval", latency_unit="word"), tmp_path / "metrics.jsonl"
    )
    (output,) = log.final_outputs_and_latencies().values()
    assert output.final_text == "Ich habe einen Hunde."
    assert output.ideal_delays == [1.0, 2.0, 2.0, 3.0]
    assert output.computational_aware_delays == [1.1, 2.2, 2.2, 3.1]
