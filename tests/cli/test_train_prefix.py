"""``redraft train prefix``: what it refuses, and both kinds of models from end to end."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_bad_input import check_refusal

PREFIX = ["train", "prefix"]
SENTENCES = "".join(f"this is sentence number {number}\n" for number in range(100))


OF_EXTRA = {
    "train": ("torch", "tokenizers", "gguf", "tqdm", "sacrebleu"),
    "lora": ("torch", "transformers", "peft", "sacrebleu", "tqdm", "sentencepiece"),
}


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
        (["--rank", "0"], ["--rank", "'0'", "from 1 to 1024"]),
        (["--rate", "0"], ["--rate", "'0'", "from 0 to 1"]),
        (["--rate", "nan"], ["--rate", "'nan'"]),
        (["--alpha", "-1"], ["--alpha", "'-1'", "over 0"]),
        (["--epochs", "0.5"], ["--epochs", "'0.5'", "from 1 to 1000"]),
        (["--batch", "0"], ["--batch", "'0'", "from 1 to 4096"]),
        (["--share", "1.5"], ["--share", "'1.5'", "from 0 to 1"]),
        (["--spoken", "2"], ["--spoken", "'2'", "from 0 to 1"]),
        (["--tolerance", "-0.1"], ["--tolerance", "'-0.1'", "of 0 or more"]),
        (["--beginnings", "0"], ["--beginnings", "'0'", "from 1 to 64"]),
        (["--samples", "-1"], ["--samples", "'-1'", "from 0 to 64"]),
        (["--held-out", "few"], ["--held-out", "'few'", "of 0 or more"]),
        (["--device", "tpu"], ["--device", "'tpu'", "'auto', 'cpu', 'cuda'"]),
        (["--to", "fr"], ["to must be de, zh or ja for this model, not 'fr'"]),
        (["--rank", "8"], ["--rank is for models of transformers, which 'demo' is not"]),
        (["--adapter"], ["--adapter is for models of transformers"]),
        (["--dtype", "bfloat16"], ["--dtype is for models of transformers"]),
        (["--out", "/"], ["out must be a GGUF file to write, and '/' is a folder"]),
        (["--model", "wonder"], ["model 'wonder' is neither a name nor a file"]),
    ],
    ids=" ".join,
)
def test_options_of_ggufs(redraft: Run, tmp_path: Path, option: list[str], words: list[str]) -> None:
    done = redraft(*PREFIX, "--data", str(tmp_path), "--out", str(tmp_path / "new" / "out.gguf"), *option)
    check_refusal(done, words)
    assert not (tmp_path / "new").exists()


class TestOptionsOfTransformers:
    @pytest.fixture(autouse=True)
    def extra(self) -> None:
        for library in OF_EXTRA["lora"]:
            pytest.importorskip(library, reason="the lora extra is not installed")

    @pytest.mark.parametrize(
        ("option", "words"),
        [
            ([], ["to must name one target language or more"]),
            (["--to", "de", "--tokens", "5"], ["--tokens is for GGUF files, which", "mine' is not: leave it out"]),
            (["--to", "de", "--format", "F16"], ["--format is for GGUF files"]),
            (["--to", "elvish"], ["'elvish' is not known"]),
            (["--to", "de", "--samples", "2"], ["samples must be 0 where the data hold no translations"]),
            (["--to", "de", "--held-out", "90"], ["data: 20 or more sentences", "of 100 different ones 10 are left"]),
            (["--to", "de", "--sources", "19"], ["data: 20 or more sentences"]),
        ],
        ids=" ".join,
    )
    def test_refusals(
        self, redraft: Run, folder: Path, sentences: Path, tmp_path: Path, option: list[str], words: list[str]
    ) -> None:
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(tmp_path / "new")]
        check_refusal(redraft(*PREFIX, *paths, *option), words)
        assert not (tmp_path / "new").exists()

    def test_places_that_cannot_be(self, redraft: Run, folder: Path, sentences: Path, tmp_path: Path) -> None:
        for data, out, words in (
            (tmp_path / "none.txt", tmp_path / "new", "data: file"),
            (folder, tmp_path / "new", "cannot be read: Is a directory"),
            (sentences, sentences, "out must be a folder to write, and"),
            (sentences, folder, "out must be another folder than that of the model"),
            (sentences, folder.parent / "." / "mine", "out must be another folder"),
        ):
            paths = ["--model", str(folder), "--data", str(data), "--out", str(out), "--to", "de"]
            check_refusal(redraft(*PREFIX, *paths), [words])

    def test_translations_are_into_one_language(self, redraft: Run, folder: Path, sentences: Path) -> None:
        sentences.write_text(SENTENCES.replace("\n", "\tdies ist ein Satz\n"))
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(folder.parent / "new")]
        check_refusal(redraft(*PREFIX, *paths, "--to", "de", "--to", "ja"), ["to must be one language", "translations"])

    def test_a_model_that_is_none(self, redraft: Run, folder: Path, sentences: Path) -> None:
        paths = ["--model", str(folder), "--data", str(sentences), "--out", str(folder.parent / "new")]
        done = redraft(*PREFIX, *paths, "--to", "de")
        check_refusal(done, ["mine' cannot be loaded with transformers"])

    @pytest.mark.parametrize("family", ["qwen3", "t5"])
    def test_from_sentences_to_a_model_that_translates(self, redraft: Run, family: str, tmp_path: Path) -> None:
        from tests.finetune.tiny import sentences, teacher

        backend = teacher(family).backend
        backend.model.save_pretrained(tmp_path / "old")
        backend.tokenizer.base.save_pretrained(tmp_path / "old")
        lines = [f"{source.text}\tx\n" for source in sentences(40)]
        (tmp_path / "pairs.tsv").write_text("".join(lines))
        options = ["--to", "de", "--held-out", "5", "--samples", "1", "--epochs", "1", "--device", "cpu"]
        paths = ["--model", f"hf:{tmp_path / 'old'}", "--data", str(tmp_path / "pairs.tsv"), "--out"]
        done = redraft(*PREFIX, *paths, str(tmp_path / "new"), *options, "--threads", "1", "--json")
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
            "--model",
            str(tmp_path / "new"),
            "--threads",
            "1",
        ]
        assert redraft("translate", *talk, "--context-length", "64", stdin=b"a b c d\n").out  # though it ends nothing


@pytest.mark.parametrize(("library", "extra"), [("torch", "train"), ("peft", "lora"), ("tqdm", "lora")])
def test_without_the_extra(
    redraft: Run, folder: Path, sentences: Path, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.startswith("recipe."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    model = ["--model", str(folder), "--to", "de"] if extra == "lora" else []
    done = redraft(*PREFIX, *model, "--data", str(sentences), "--out", str(folder.parent / "new"))
    check_refusal(done, [f" of the {extra} extra", f"pip install 'redraft[{extra}]'"])
    # Where the extra is not installed, another of its libraries may be missed first.
    missing = [library, *(other for other in OF_EXTRA[extra] if find_spec(other) is None)]
    assert done.err.removeprefix("redraft: training needs ").split()[0] in missing


class TestWithTheTrainExtra:
    @pytest.fixture(autouse=True)
    def extra(self) -> None:
        for library in OF_EXTRA["train"]:
            pytest.importorskip(library, reason="the train extra is not installed")

    def test_data_without_texts(self, redraft: Run, tmp_path: Path) -> None:
        done = redraft(*PREFIX, "--data", str(tmp_path), "--out", str(tmp_path / "out.gguf"))
        check_refusal(done, ["data: ", "no en-de.*tsv.gz in"])
        assert [*tmp_path.iterdir()] == []

    @pytest.mark.slow
    def test_from_the_corpus_to_a_gguf_that_translates(self, redraft: Run, tmp_path: Path) -> None:
        import torch

        from recipe.export import write_gguf
        from recipe.loop import Phase, Trainer
        from recipe.model import Shape
        from recipe.tokenizer import train_tokenizer
        from tests.recipe.toys import toy_pairs, write_pairs

        torch.set_num_threads(1)
        pairs = toy_pairs(900, shortest=3)
        tokenizer = train_tokenizer(pairs, 300, 20_000)
        shape = Shape(300, hidden=64, layers=2, heads=2, feed_forward=64, head=32)
        trainer = Trainer(shape, Phase(tokens=40_000, prefix=0.0, decay=0.5, batch=512, warmup_steps=5))
        trainer.run(pairs, tokenizer, tmp_path / "checkpoints")
        write_gguf(trainer.model, tokenizer, tmp_path / "old.gguf", "toy", {})
        write_pairs(tmp_path, pairs)
        options = [
            "--to",
            "de",
            "--to",
            "ja",
            "--sources",
            "40",
            "--samples",
            "1",
            "--tokens",
            "6000",
            "--held-out",
            "3",
        ]
        command = [*PREFIX, "--model", str(tmp_path / "old.gguf"), "--data", str(tmp_path), "--processes", "1"]
        out = tmp_path / "new.gguf"
        done = redraft(*command, *options, "--out", str(out), "--format", "F32", "--json")
        assert done.status == 0, done.err
        assert [row["target_language"] for row in done.rows] == ["de", "ja"]
        assert sum(row["sources"] + row["unfinished"] for row in done.rows) == 40
        for row in done.rows:
            assert row["held_out"] == 3 and row["chrf_before"] is not None and row["length_after"] > 0
            assert "model:new.gguf@" in row["signature"] and "of:old.gguf|tokens:6000|share:0.65" in row["signature"]
        first, before = out.read_bytes(), {path: path.stat().st_mtime_ns for path in tmp_path.rglob("examples.npz")}
        assert len(before) == 1
        out.unlink()
        done = redraft(*command, *options, "--out", str(out), "--format", "F32")
        assert (done.status, done.out.splitlines()[0].split()[:4]) == (0, ["to", "sources", "unfinished", "held"])
        assert out.read_bytes() == first
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("examples.npz")} == before
