"""Recorded passes, their repetition on a toy model, and the page that is made from the rows."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from redraft_bench.eval.record import PassRecord, Record, Step, write_records
from redraft_bench.eval.replay import read_traces
from redraft_bench.pages import build
from redraft_bench.pages.gpu import findings, overview

METHODS = ("ar", "ssbd beta=0.2", "redraft")


def _step(seq: int, prompt: int, *passes: PassRecord) -> Step:
    return Step(seq, "", False, None, prompt, (700, 2, 3), "", "", True, 0.0, 0.0, passes)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Updates with growing prompts: with drafts, and without news."""
    first = PassRecord(0, 12, 2, 2, 1), PassRecord(12, 1, 0, 0, 0)
    later = [(PassRecord(8, 7, 3, 3, 3),), (), (PassRecord(10, 8, 3, 3, 0), PassRecord(15, 1, 0, 0, 0))]
    steps = [_step(0, 10, *first), *(_step(seq, 12 + seq, *passes) for seq, passes in enumerate(later))]
    path = tmp_path / "x.records.jsonl"
    write_records(path, [Record(0, "1", f"{name}, de", tuple(steps)) for name in METHODS])
    run = {"signature": "redraft:0|model:toy.gguf@1|data:talk@2", "lines": [f"{name}, de" for name in METHODS]}
    path.with_name("x.run.json").write_text(json.dumps(run), "utf-8")
    return path


def test_passes_are_those_of_the_records(recorded: Path) -> None:
    traces = [*read_traces(recorded)]
    assert [(each.model, each.data, each.language, each.method) for each in traces] == [
        ("toy.gguf", "talk", "de", name) for name in METHODS
    ]
    (first, second), (third,), none, _ = traces[0].updates
    assert (len(first.prefix), first.draft.tokens[0], first.draft.tokens[1] < 0) == (10, 700, True)
    assert second.prefix == (*first.prefix, 700, 2, 3)[:13] and not second.draft
    assert third.prefix[:8] == first.prefix[:8] and third.prefix[8] < 0
    assert third.draft.tokens == (700, 2, 3) and none == ()


def test_vocabulary_of_a_smaller_model(recorded: Path) -> None:
    scores = [score for scores in next(read_traces(recorded, 6)).updates for score in scores]
    assert {token for score in scores for token in (*score.prefix, *score.draft.tokens)} <= set(range(6))


@pytest.fixture
def rows(recorded: Path, tmp_path: Path) -> list[dict[str, Any]]:
    """The rows of a run on the CPU."""
    pytest.importorskip("torch", reason="needs the extra hf")
    import torch

    from redraft_bench.scripts.gpu import Card, compared, parts, report_on, run

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    report = report_on([recorded], tmp_path / "gpu.jsonl", "cpu")
    run([*parts(Card("cpu"), ["toy"], compared([recorded]))], report, time.monotonic() + 3)
    torch.set_num_threads(threads)
    return [json.loads(line) for line in report.out.read_text("utf-8").splitlines()]


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_run_on_the_cpu_and_its_page(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    assert {row["part"] for row in rows} >= {"ceilings", "pass", "stream", "sessions", "ids"}
    assert not [row for row in rows if row["part"] == "failed"]
    assert all(row["mismatches"] == 0 for row in rows if row["part"] == "ids")
    streams = {row["method"]: row for row in rows if row["part"] == "stream"}
    assert streams["ar"]["speedup"] == 1.0 and set(streams) == {"ar", "ssbd beta=0.2", "redraft"}
    assert all("|card:CPU|" in row["signature"] for row in rows)
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "gpu.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    build.write(tmp_path)
    assert build.stale(tmp_path) == []
    page = (tmp_path / "docs" / "benchmarks" / "gpu.md").read_text(encoding="utf-8")
    assert "(gpu-passes.svg)" in page and "On CPU, a pass over 1 to 64 new tokens takes" in page


def _row(part: str, shape: str = "8B", **figures: Any) -> dict[str, Any]:
    return {"part": part, "shape": shape, "signature": "card:NVIDIA Z80|torch:2", **figures}


QWEN = {"recorded": "qwen-0.5b", "data": "talk"}
ROWS = [
    _row("ceilings", "", gigabytes_per_second=2000.0),
    *(_row("pass", sessions=1, new=new, gigabytes=16.0, ms=ms) for new, ms in ((1, 10.0), (32, 15.0))),
    _row("pass", "0.6B", sessions=1, new=1, gigabytes=1.0, ms=5.0),
    *(
        _row(
            "stream",
            recorded="qwen-0.5b",
            data="talk",
            method=method,
            updates=4,
            passes=8,
            ms=80.0 / speedup,
            speedup=speedup,
        )
        for method, speedup in (("ar", 1.0), ("redraft", 2.5))
    ),
    *(
        _row("sessions", sessions=count, method="redraft", rounds=rounds, updates_per_second=10.0 * count)
        for count, rounds in ((1, 9), (64, 5), (128, 2))
    ),
    _row("ids", "", method="ar", updates=9, mismatches=1),
]


def test_sentences() -> None:
    text = findings(ROWS)
    assert "On NVIDIA Z80, a pass over 1 to 64 new tokens takes 5–15 ms in the shapes of Qwen3 0.6B and 8B" in text
    assert "by a factor of 2.5 with `redraft`." in text
    assert "64 sessions that share passes get 640 with `redraft` updates a second." in text
    assert "1 of 9 outputs of 1 methods differ" in text


def test_tables() -> None:
    text = overview(ROWS)
    assert "| 8B | 8.00 |  | 10.0 |  | 15.0 |" in text
    assert "| redraft | 2.0 | 32 |" in text and "| 8B | redraft | 10.0 | 640.0 |" in text
    assert overview([_row("failed", kind="pass", error="x")]) == ""
