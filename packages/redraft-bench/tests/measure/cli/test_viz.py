"""``redraft viz`` on the demo model, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

DDG = ["viz", "ddg", "We met at the station.", "--to", "de"]
DRAFTS = ["viz", "drafts", "-", "--to", "de"]
SMALL = ["--model", "demo-tiny", "--threads", "1"]


@pytest.mark.parametrize("command", [DDG, DRAFTS])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], ["--out"]),
        (["--out", "x.pdf"], ["--out", ".svg or .png", "'x.pdf'"]),
        (["--out", "svg"], ["--out", "'svg'"]),
        (["--out", "no/such/x.svg"], ["--out", "a folder that exists", "'no/such/x.svg'"]),
        (["--out", "x.svg", "--to", "xx"], ["--to 'xx'"]),
        (["--out", "x.svg", "--model", "nowhere"], ["nowhere"]),
    ],
)
def test_what_is_refused_is_one_sentence(redraft: Run, command: list[str], given: list[str], said: list[str]) -> None:
    done = redraft(*command, *given, stdin=b"a\n")
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    for text in said:
        assert text in done.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--method", "ssbd"], ["--method", "'jacobi', 'gs-jacobi', 'hybrid-jacobi'"]),
        (["--option", "block=2"], ["'jacobi'", "'block'"]),
        (["--max-tokens", "0"], ["--max-tokens", "from 1 to 256"]),
    ],
)
def test_graph_needs_method_that_iterates(redraft: Run, given: list[str], said: list[str]) -> None:
    done = redraft(*DDG, "--out", "x.svg", *given)
    assert done.status == 2
    for text in said:
        assert text in done.err


def test_empty_text_is_refused(redraft: Run) -> None:
    done = redraft("viz", "ddg", " \n", "--to", "de", "--out", "x.svg")
    assert (done.status, done.err) == (2, "redraft: TEXT must not be empty\n")


@pytest.mark.parametrize("method", ["jacobi", "gs-jacobi", "hybrid-jacobi"])
@pytest.mark.parametrize("stopping", ["paper", "fast-forward"])
def test_graph_of_sentence(redraft: Run, tmp_path: Path, method: str, stopping: str) -> None:
    pytest.importorskip("llama_cpp")
    path = tmp_path / "graph.svg"
    done = redraft(
        *DDG, *SMALL, "--method", method, "-o", f"stopping={stopping}", "--max-tokens", "12", "--out", str(path)
    )
    assert done.status == 0
    page = path.read_text(encoding="utf-8")
    assert "We met at the station." in page
    shown = f"demo-tiny, {method} (stopping paper)" if stopping == "paper" else f"demo-tiny, {method}: "
    assert shown in page


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_drafts_of_stream(redraft: Run, tmp_path: Path, ending: str) -> None:
    pytest.importorskip("llama_cpp")
    path = tmp_path / f"drafts.{ending}"
    stdin = b"We met\nWe met at the station.\n"  # without capital and full stop the final text is another prompt
    done = redraft(
        *DRAFTS, *SMALL, "--updates", "3", "--max-tokens", "12", "--beta", "0.9", "--out", str(path), stdin=stdin
    )
    assert (done.status, done.err) == (0, "")
    if ending == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
        return
    page = path.read_text(encoding="utf-8")
    for text in (
        "We met at the station.",
        "same source: no pass",
        "kept from what was hidden",
    ):
        assert text in page
    assert re.search(r"\d of \d draft tokens", page)


def test_missing_glyphs_are_said_once(redraft: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_cpp")
    monkeypatch.setattr("redraft_bench.viz.figure.CJK_FONTS", ())
    path = tmp_path / "graph.png"
    done = redraft("viz", "ddg", "我们 met", "--to", "de", *SMALL, "--max-tokens", "4", "--out", str(path))
    assert done.status == 0
    said = [line for line in done.err.splitlines() if "no installed font has" in line]
    assert len(said) == 1
    assert "such as 我" in said[0]
    assert path.exists()
