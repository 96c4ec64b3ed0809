"""``redraft bench``: every command runs, and refuses impossible options before it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from measure.bench.test_run import quick_curves
from tests.cli.conftest import Run

__all__ = ["quick_curves"]

#: One thread.
ONE = ("--engine", "threads=1")
LINES = [
    {"utterance": "1", "seq": 0, "text": "I have"},
    {"utterance": "1", "seq": 1, "text": "I have a dog.", "final": True},
    {"utterance": "2", "seq": 0, "text": "She plays", "final": False},
    {"utterance": "2", "seq": 1, "text": "She plays the piano.", "final": True},
]


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def test_table_of_stream_of_ones_own(redraft: Run, talk: Path, tmp_path: Path) -> None:
    done = redraft("bench", "run", "ssbd", "--data", str(talk), "--method", "ssbd", *ONE, "--out", str(tmp_path))
    assert done.status == 0, done.err
    assert "ssbd" in done.out and "redraft:" in done.out
    assert (tmp_path / "report.md").exists()
    again = redraft(
        *("bench", "run", "ssbd", "--data", str(talk), "--method", "ssbd", *ONE, "--out", str(tmp_path), "--json")
    )
    assert [(row["method"], row["segments"], row["updates"]) for row in again.rows] == [
        ("ar", 2, 4),
        *[("ssbd", 2, 4)] * 2,
    ]
    assert [row["display"] for row in again.rows] == ["", "", "mask 3"]


def test_without_data_talk_that_ships_is_measured(redraft: Run, tmp_path: Path) -> None:
    command = ("bench", "run", "ssbd", "--method", "ssbd", "--limit", "1", *ONE, "--out", str(tmp_path), "--json")
    done = redraft(*command)
    assert done.status == 0, done.err
    assert {row["segments"] for row in done.rows} == {1} and "data:talk@" in done.rows[0]["signature"]
    assert "--lag: 'talk' has updates of its own" in redraft(*command, "--lag", "2").err


def test_lines_pairs_and_texts_for_other_metrics(redraft: Run, tmp_path: Path) -> None:
    data, out = tmp_path / "pairs.tsv", tmp_path / "out"
    data.write_text("I have a dog.\tIch habe einen Hund.\nShe plays the piano.\tSie spielt Klavier.\n")
    command = ("bench", "run", "ssbd", "--data", str(data), *ONE, "--out", str(out))
    done = redraft(*command, "--line", "ssbd beta=0,0.5 mask_k=0,3", "--line", "aasd batch=2")
    assert done.status == 0, done.err
    (texts,) = out.glob("*.texts")
    assert (texts / "source.txt").read_text() == "I have a dog.\nShe plays the piano.\n"
    assert (texts / "reference.txt").read_text() == "Ich habe einen Hund.\nSie spielt Klavier.\n"
    hypotheses = sorted(texts.glob("hypothesis.*.txt"))
    assert len(hypotheses) == 6 and all(len(each.read_text().splitlines()) == 2 for each in hypotheses)
    assert "![trade]" in (out / "report.md").read_text()


def test_lines_that_the_model_cannot_run_are_left_out(
    redraft: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft.models.SMALL_OF", {})
    data = tmp_path / "pairs.tsv"
    data.write_text("I have a dog.\tIch habe einen Hund.\n")
    command = ("bench", "run", "cold", "--data", str(data), *ONE, "--out", str(tmp_path / "out"), "--json")
    done = redraft(*command, "--line", "pld", "--line", "bild", "--line", "bild-early-exit")
    assert done.status == 0, done.err
    assert [row["method"] for row in done.rows] == ["ar", "pld"]
    left = [line for line in done.err.splitlines() if "left out" in line]
    assert len(left) == 2 and "--draft-model" in left[0] and "early exit" in left[1]
    alone = redraft(*command, "--line", "bild")
    assert alone.status == 2 and "--draft-model" in alone.err


def test_method_that_the_table_lacks_has_a_line(redraft: Run, talk: Path, tmp_path: Path) -> None:
    command = ("bench", "run", "quality", "--data", str(talk), *ONE, "--out", str(tmp_path), "--json")
    assert [row["method"] for row in redraft(*command, "--method", "pld").rows] == ["ar", "pld"]


def test_missing_test_set(redraft: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path))
    done = redraft("bench", "run", "ssbd", "--data", "flores200.devtest", "--out", str(tmp_path / "out"))
    assert done.status == 2 and str(tmp_path / "test" / "flores200.devtest.en.txt") in done.err
    assert "set REDRAFT_DATA" in done.err and "--data talk" in done.err


def test_whole_sentences_of_stream_are_its_final_updates(redraft: Run, talk: Path, tmp_path: Path) -> None:
    done = redraft(
        *("bench", "run", "cold", "--data", str(talk), "--method", "pld", *ONE, "--out", str(tmp_path), "--json")
    )
    assert [row["updates"] for row in done.rows] == [2, 2]
    assert done.rows[1]["same_as_ar"] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--method", "nosuch"], "method 'nosuch' is not known"),
        (["--line", "ssbd gamma=1"], "no option 'gamma'"),
        (["--from", "de", "--data", "talk"], "'talk' is English"),
        (["--to", "de", "--to", "klingonish"], "klingonish"),
        (["--lag", "2"], "has updates of its own"),
        (["--data", "nosuch.jsonl"], "--data: file 'nosuch.jsonl' does not exist"),
        (["--data", "nosuch"], "--data must be one of"),
    ],
)
def test_refusals(arguments: list[str], sentence: str, redraft: Run, talk: Path, tmp_path: Path) -> None:
    given = [str(tmp_path / "other.gguf") if each == "OTHER" else each for each in arguments]
    data = [] if "--data" in given else ["--data", str(talk)]
    done = redraft("bench", "run", "ssbd", *data, *given, "--out", str(tmp_path / "out"))
    assert done.status == 2
    assert sentence in done.err
    assert not (tmp_path / "out").exists()


def test_run_of_another_stream_is_not_overwritten(redraft: Run, talk: Path, tmp_path: Path) -> None:
    command = ("bench", "run", "quality", "--data", str(talk), *ONE, "--out", str(tmp_path), "--json")
    assert redraft(*command).status == 0
    talk.write_text("".join(json.dumps(line) + "\n" for line in LINES[:2]))
    assert "another run" in redraft(*command).err
