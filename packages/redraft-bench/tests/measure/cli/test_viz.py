"""``redraft viz`` on the demo model, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

VIZ = [
    "viz",
    "-",
    "--to",
    "de",
    "--model",
    "demo-tiny",
    "--engine",
    "threads=1",
    "--updates",
    "3",
    "--option",
    "max_tokens=12",
]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--out", "x.pdf"], ["--out", ".svg", "'x.pdf'"]),
        (["--out", "no/such/x.svg"], ["--out", "a folder that exists", "'no/such/x.svg'"]),
        (["--to", "xx"], ["--to 'xx'"]),
        (["--model", "nowhere"], ["nowhere"]),
    ],
)
def test_refusals(redraft: Run, given: list[str], said: list[str]) -> None:
    done = redraft(*VIZ, *given, stdin=b"a\n")
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    for text in said:
        assert text in done.err


@pytest.mark.parametrize("to_file", [True, False])
def test_stream(redraft: Run, tmp_path: Path, to_file: bool) -> None:
    path = tmp_path / "drafts.svg"
    stdin = b"We met\nWe met at the station.\n"  # without capital and full stop the final text is another prompt
    settings = ["--option", "beta=0.9", "--option", "stop=0"]
    done = redraft(*VIZ, *settings, *(["--out", str(path)] if to_file else []), stdin=stdin)
    assert (done.status, done.err) == (0, "")
    page = path.read_text(encoding="utf-8").replace("&#160;", " ") if to_file else done.out
    for text in ("We met at the station.", "same source: no pass", "kept from what was hidden", "draft tokens"):
        assert text in page


@pytest.mark.parametrize("method", ["jacobi", "gs-jacobi", "hybrid-jacobi"])
def test_graph_of_each_final_text_and_language(redraft: Run, tmp_path: Path, method: str) -> None:
    command = ["viz", "-", "--to", "de", "--to", "ja", "--ddg", "--model", "demo-tiny", "--engine", "threads=1"]
    stdin = b"We\nWe met.\n\nShe slept.\n"
    done = redraft(*command, "--method", method, "--json", stdin=stdin)
    assert done.status == 0, done.err
    assert [(row["source"], row["target_language"]) for row in done.rows] == [
        (text, language) for language in ("de", "ja") for text in ("We met.", "She slept.")
    ]
    for row in done.rows:
        assert len(row["guesses"]) == row["iterations"] >= max(each["iteration"] for each in row["tokens"])
        assert row["tokens"][-1]["text"] == "[end]"
    path = tmp_path / "ddg.svg"
    assert redraft(*command, "--method", method, "--out", str(path), stdin=stdin).status == 0
    assert path.read_text("utf-8").count("iterations") == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [(["--json"], "--json is for --ddg"), (["--ddg", "--json", "--out", "x.svg"], "--json is for --ddg")],
)
def test_json_is_for_graphs_alone(redraft: Run, given: list[str], said: str) -> None:
    done = redraft(*VIZ, *given, stdin=b"a\n")
    assert done.status == 2 and said in done.err
