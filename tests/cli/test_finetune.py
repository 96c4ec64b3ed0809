"""``redraft finetune``: what it refuses, and a run from sentences to a model that translates."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.refusals import check_refusal

SENTENCES = "".join(f"this is sentence number {number}\n" for number in range(100))
LIBRARIES = ("torch", "transformers", "peft", "sacrebleu", "tqdm", "sentencepiece")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that passes for a model of transformers."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    return tmp_path / "mine"


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    (tmp_path / "sentences.txt").write_text(SENTENCES)
    return tmp_path / "sentences.txt"


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--rank", "0"], ["--rank", "0 is not in", "1<=x<=1024"]),
        (["--rate", "0"], ["--rate", "0.0", "0<x<=1"]),
        (["--rate", "nan"], ["--rate", "nan is not in"]),
        (["--alpha", "-1"], ["--alpha", "-1.0", "x>0"]),
        (["--epochs", "0.5"], ["--epochs", "'0.5'", "integer"]),
        (["--batch", "0"], ["--batch", "0 is not in", "1<=x<=4096"]),
        (["--spoken", "2"], ["--spoken", "2.0", "0<=x<=1"]),
        (["--tolerance", "-0.1"], ["--tolerance", "-0.1", "x>=0"]),
        (["--beginnings", "0"], ["--beginnings", "0 is not in", "1<=x<=64"]),
        (["--samples", "-1"], ["--samples", "-1", "0<=x<=64"]),
        (["--held-out", "few"], ["--held-out", "'few'", "integer"]),
        (["--learn", "all"], ["--learn", "'all'", "'outputs', 'translations'"]),
        (["--engine", "device=tpu"], ["device must be auto, cpu or cuda, not 'tpu'"]),
        (["--to", "elvish"], ["'elvish' is not known"]),
        (["--model", "demo"], ["model must be hf:NAME, hf:FILE.gguf or the folder of a model"]),
    ],
    ids=" ".join,
)
def test_bad_options(redraft: Run, folder: Path, sentences: Path, option: list[str], words: list[str]) -> None:
    paths = ["--model", str(folder), "--data", str(sentences), "--out", str(folder.parent / "new")]
    check_refusal(redraft("finetune", *paths, "--to", "de", *option), words)
    assert not (folder.parent / "new").exists()


@pytest.mark.parametrize("missing", ["--model", "--data", "--out", "--to"])
def test_what_is_needed_is_named(redraft: Run, folder: Path, sentences: Path, missing: str) -> None:
    options = {"--model": str(folder), "--data": str(sentences), "--out": str(folder.parent / "new"), "--to": "de"}
    given = [word for name, value in options.items() if name != missing for word in (name, value)]
    check_refusal(redraft("finetune", *given), ["Missing option", missing])


class TestWithTheExtra:
    @pytest.fixture(autouse=True)
    def extra(self) -> None:
        for library in LIBRARIES:
            pytest.importorskip(library, reason="needs the extra train")

    @pytest.mark.parametrize(
        ("option", "words"),
        [
            (["--samples", "2"], ["samples must be 0 if the data contain no translations"]),
            (["--learn", "translations"], ["learn must be outputs if the data contain no translations"]),
            (["--held-out", "90"], ["data: at least 20 sentences", "of 100 different ones only 10 are left"]),
            (["--sources", "19"], ["data: at least 20 sentences"]),
        ],
        ids=" ".join,
    )
    def test_refusals(
        self, redraft: Run, folder: Path, sentences: Path, tmp_path: Path, option: list[str], words: list[str]
    ) -> None:
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(tmp_path / "new")]
        check_refusal(redraft("finetune", *paths, "--to", "de", *option), words)
        assert not (tmp_path / "new").exists()

    def test_places_that_cannot_be(self, redraft: Run, folder: Path, sentences: Path, tmp_path: Path) -> None:
        for data, out, words in (
            (tmp_path / "none.txt", tmp_path / "new", "data: file"),
            (folder, tmp_path / "new", "cannot be read: Is a directory"),
            (sentences, sentences, "out must be a folder to write, and"),
            (sentences, folder, "out must not be the folder of the model"),
            (sentences, folder.parent / "." / "mine", "out must not be the folder of the model"),
        ):
            paths = ["--model", str(folder), "--data", str(data), "--out", str(out), "--to", "de"]
            check_refusal(redraft("finetune", *paths), [words])

    def test_translations_are_into_one_language(self, redraft: Run, folder: Path, sentences: Path) -> None:
        sentences.write_text(SENTENCES.replace("\n", "\tdies ist ein Satz\n"))
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(folder.parent / "new")]
        check_refusal(redraft("finetune", *paths, "--to", "de", "--to", "ja"), ["to must be a single language"])

    def test_prompt_without_source(self, redraft: Run, folder: Path, sentences: Path, tmp_path: Path) -> None:
        (tmp_path / "prompt.txt").write_text("English: {sorce}")
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(tmp_path / "new")]
        done = redraft("finetune", *paths, "--to", "de", "--prompt", str(tmp_path / "prompt.txt"))
        check_refusal(done, ["prompt: {sorce} is not a field"])

    def test_model_that_is_none(self, redraft: Run, folder: Path, sentences: Path) -> None:
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(folder.parent / "new")]
        done = redraft("finetune", *paths, "--to", "de")
        check_refusal(done, ["mine' cannot be loaded with transformers"])

    @pytest.mark.parametrize("family", ["qwen3", "t5"])
    def test_from_sentences_to_model_that_translates(self, redraft: Run, family: str, tmp_path: Path) -> None:
        from finetune.tiny import sentences, teacher

        backend = teacher(family).backend
        backend.model.save_pretrained(tmp_path / "old")
        backend.tokenizer.base.save_pretrained(tmp_path / "old")
        lines = [f"{source.text}\tx\n" for source in sentences(40)]
        (tmp_path / "pairs.tsv").write_text("".join(lines))
        options = ["--to", "de", "--held-out", "5", "--samples", "1", "--epochs", "1", "--engine", "device=cpu"]
        paths = ["--model", f"hf:{tmp_path / 'old'}", "--data", str(tmp_path / "pairs.tsv"), "--out"]
        done = redraft("finetune", *paths, str(tmp_path / "new"), *options, "--engine", "threads=1", "--json")
        assert done.status == 0, done.err
        (row,) = done.rows
        assert (row["target_language"], row["held_out"], row["sources"] + row["unfinished"]) == ("de", 5, 35)
        assert None not in (row["ne_before"], row["ne_after"], row["chrf_before"], row["chrf_after"])
        for part in ("model:new@", "data:held-out@", "of:old", "lora:rank16,rate0.0005,x1", "seed:0"):
            assert part in row["signature"]
        talk = [
            "--input",
            "text",
            "--to",
            "de",
            "--output",
            "lines",
            "--engine",
            "threads=1",
            "--engine",
            "context_length=64",
        ]
        done = redraft("translate", *talk, "--model", str(tmp_path / "new"), stdin=b"a b c d\n")
        assert done.out  # though it ends nothing


@pytest.mark.parametrize("library", ["torch", "peft", "tqdm"])
def test_without_extra(
    redraft: Run, folder: Path, sentences: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.startswith("redraft_train.") and name != "redraft_train.cli":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    paths = ["--model", str(folder), "--data", str(sentences), "--out", str(folder.parent / "new")]
    done = redraft("finetune", *paths, "--to", "de")
    check_refusal(done, ["which is not installed", "packages/redraft-train"])
    # Where the extra is not installed, another of its libraries may be missed first.
    missing = [library, *(other for other in LIBRARIES if find_spec(other) is None)]
    assert done.err.removeprefix("redraft: finetune needs ").split()[0].rstrip(",") in missing
