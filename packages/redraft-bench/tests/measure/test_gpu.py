"""Recorded passes, their repetition on a toy model, and the page that is made from the rows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from redraft.decoding.types import Draft, Provenance, Score
from redraft_bench.eval.trace import Pass, Recorder, Trace, read_traces, write_traces
from redraft_bench.pages import build
from redraft_bench.pages.gpu import findings, overview
from redraft_bench.scripts import traces

TREE = Draft((5, 6, 7), (-1, -1, 1), (Provenance.MODEL,) * 3)


def _passes() -> Iterator[tuple[Pass, ...]]:
    """Updates with growing prompts: passes with a chain, with a tree, and none."""
    for number in range(1, 5):
        prompt = tuple(range(10, 10 + 4 * number))
        yield (
            Pass(Score(prompt, Draft.chain((1, 2), Provenance.MODEL)), (("argmax", -1, ()), ("logprob", 0, (700,)))),
            Pass(Score((*prompt, 1), TREE), (("top_k", 2, (3,)),)),
        )
        yield ()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl.gz"
    names = ("ar", "ssbd beta=0.2", "redraft")
    write_traces(path, [Trace("toy", "talk", "de", name, tuple(_passes())) for name in names])
    return path


def test_traces_are_kept(recorded: Path) -> None:
    for trace in read_traces(recorded):
        assert trace == Trace("toy", "talk", "de", trace.method, tuple(_passes()))


def test_vocabulary_of_a_smaller_model(recorded: Path) -> None:
    within = read_traces(recorded)[0].within(6)
    ids = {token for passes in within.updates for each in passes for token in each.score.prefix}
    assert ids <= set(range(6)) and within.updates[0][1].score.draft.parents == TREE.parents
    assert within.updates[0][0].reads == (("argmax", -1, ()), ("logprob", 0, (4,)))


def test_recording_has_the_passes_of_a_method(tmp_path: Path) -> None:
    out = tmp_path / "traces.jsonl.gz"
    common = ["--model", "demo-tiny", "--limit", "3"]
    three = [word for name in ("ar", "local-agreement n=2", "ssbd beta=0.2") for word in ("--method", name)]
    for options in (three, ["--method", "ar", "--label", "again", "--append"]):
        found = CliRunner().invoke(traces.main, [*common, *options, str(out)], catch_exceptions=False)
        assert found.exit_code == 0
    plain, agreed, drafted, again = read_traces(out)
    assert again.updates == plain.updates and again.method == "again"
    assert all(len(each.score.draft) == 0 for passes in plain.updates for each in passes)
    assert any(len(each.score.draft) for passes in drafted.updates for each in passes)
    assert [len(each.updates) for each in (agreed, drafted)] == 2 * [len(plain.updates)]
    assert all(each.reads for trace in (plain, drafted) for passes in trace.updates for each in passes)


@pytest.fixture
def rows(recorded: Path, tmp_path: Path) -> list[dict[str, Any]]:
    """The rows of a run on the CPU."""
    pytest.importorskip("torch", reason="the hf extra is not installed")
    pytest.importorskip("transformers", reason="the hf extra is not installed")
    import torch

    from redraft_bench.scripts.gpu import Card, parts, report_on, run

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    report = report_on(recorded, tmp_path / "gpu.jsonl", "cpu")
    run([*parts(Card("cpu"), ["toy"], read_traces(recorded))], report, time.monotonic() + 3)
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


def test_recorder_leaves_the_rest_to_the_backend() -> None:
    from tests.fakes import RandomModel

    backend = RandomModel()
    recorder = Recorder(backend)
    (rows,) = recorder.score([(recorder.open_slot(), Score((1, 2, 3)))])
    assert rows.argmax(-1) == rows.best(-1, 1)[0]
    (taken,) = recorder.take()
    assert taken == Pass(Score((1, 2, 3)), (("argmax", -1, ()), ("best", -1, (1,)))) and recorder.take() == ()
