"""``redraft bench load`` and ``redraft bench capacity``: rows, refusals of options, the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.serve.servers import running

QUICK = ("--stagger", "0", "--warm-up", "0", "--rate", "25")


def test_bounds_and_exit_status(redraft: Run, tmp_path: Path) -> None:
    with running(keep_seconds=0.1, methods=("redraft",)) as server:
        command = ("bench", "load", "--server", server.url, *QUICK, "--talks", "2", "--out", str(tmp_path))
        done = redraft(*command, "--minutes", "0.02", "--max-p95", "30", "--json")
        assert (done.status, done.err) == (0, "")
        failed = redraft(*command, "--minutes", "0.02", "--max-p95", "0")
    (row,) = done.rows
    assert (row["bench"], row["data"], row["target_language"]) == ("load", "talk", "de")
    assert (row["method"], row["options"], row["admission"], row["talks"]) == ("redraft", "", "", 2)
    assert row["signature"].startswith("redraft:") and "model:unknown" in row["signature"]
    assert failed.status == 1 and failed.err.startswith("redraft: redraft: p95 of the caption lag is ")
    assert "lag p50" in failed.out
    written = [json.loads(line) for line in (tmp_path / "load-talk-de.rows.jsonl").read_text().splitlines()]
    assert len(written) == 1  # the second run takes the place of the first


def test_refused_sessions_are_told_with_their_reason(redraft: Run, tmp_path: Path) -> None:
    with running(keep_seconds=0.1, methods=("redraft",), sessions=1) as server:
        command = ("bench", "load", "--server", server.url, *QUICK, "--talks", "3", "--out", str(tmp_path))
        done = redraft(*command, "--minutes", "0.02")
    assert done.status == 0
    assert done.err == ("redraft: 2 sessions refused (capacity), such as: all 1 sessions are in use: try again later\n")


def test_search_writes_what_it_found_and_what_it_tried(redraft: Run, tmp_path: Path) -> None:
    with running(keep_seconds=0.1) as server:
        command = ("bench", "capacity", "--server", server.url, *QUICK, "--seconds", "0.5", "--out", str(tmp_path))
        for method in ("ssbd", "ar"):
            done = redraft(*command, "--method", method, "--most", "2", "--max-p95", "30", "--json")
            assert [(row["method"], row["talks"]) for row in done.rows] == [(method, 2)], done.err
        (none,) = redraft(*command, "--method", "ar", "--max-p95", "0.000001", "--json").rows
    assert none["talks"] == 0
    lines = [json.loads(line) for line in (tmp_path / "capacity-talk-de.rows.jsonl").read_text().splitlines()]
    assert [(line["method"], line["talks"]) for line in lines[:-1]] == [("ssbd", 2), ("ar", 0)]
    assert [[talks for talks, _ in tried] for tried in lines[-1]["trials"].values()] == [[1, 2], [1]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--set", "nosuch=1"), "--set must be NAME=VALUE with NAME one of"),
        (("--set", "slots"), "--set must be NAME=VALUE"),
        (("--set", "busy=1"), "--set must be NAME=VALUE"),
        (("--server", "http://127.0.0.1:1", "--no-admission"), "--no-admission cannot be combined with --server"),
        (("--server", "http://127.0.0.1:1"), "http://127.0.0.1:1 cannot be reached"),
        (("--method", "nosuch"), "nosuch"),
        (("--method", "ar", "--option", "beta=1"), "method 'ar' has no option 'beta'"),
        (("--to", "klingonish"), "klingonish"),
        (("--minutes", "0.1"), "a run must last over 15 seconds, --stagger and --warm-up, not 6"),
        (("--talks", "0"), "1<=x<=5000"),
        (("--data", "nosuch"), "--data must be one of"),
        (("--model", "nosuch"), "model 'nosuch' is neither a name nor a file"),
        (("--set", "slots=0"), "SLOTS in the environment: Input should be greater than or equal to 1"),
    ],
)
def test_what_cannot_be_done_is_refused_in_sentence(
    redraft: Run, arguments: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    done = redraft("bench", "load", "--talks", "1", "--out", str(tmp_path), *arguments)
    assert done.status == 2 and sentence in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "load-talk-de.rows.jsonl").exists()


@pytest.mark.slow
def test_server_is_started_and_stopped(redraft: Run, tmp_path: Path) -> None:
    done = redraft(
        *(
            "bench",
            "load",
            *QUICK[:4],
            "--talks",
            "2",
            "--minutes",
            "0.1",
            "--model",
            "demo-tiny",
            "--engine",
            "threads=1",
        ),
        *("--set", "slots=4", "--no-admission", "--out", str(tmp_path), "--json"),
    )
    assert done.status == 0, done.err
    (row,) = done.rows
    assert (row["admission"], row["options"], row["left_over"]) == ("off", "slots=4", 0)
    assert row["captions"] + row["passed_over"] == row["updates"] > 0
    assert row["server_mb"] > 10 and row["server_cpu"] > 0
    log = [json.loads(line) for line in (tmp_path / "load-redraft.log").read_text().splitlines()]
    assert log[-1]["message"].startswith("drained")
