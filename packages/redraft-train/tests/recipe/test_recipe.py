"""The recipe at toy size: one command makes what ships and resumes; a teacher's translations become examples."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from recipe.toys import toy_pairs, write_pairs  # noqa: E402
from redraft.errors import ModelError  # noqa: E402
from redraft.models import shipped_path  # noqa: E402  # noqa: E402
from redraft_train.recipe import __main__ as command  # noqa: E402
from redraft_train.recipe import teach as teaching  # noqa: E402
from redraft_train.recipe.calibrate import Calibration  # noqa: E402
from redraft_train.recipe.corpus import LANGUAGES, Pair  # noqa: E402
from redraft_train.recipe.export import write_gguf  # noqa: E402
from redraft_train.recipe.loop import Hardware, spawn  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.packed import Packed  # noqa: E402
from redraft_train.recipe.recipe import DEFAULT_STAGES, EXPORTED, STAGES, Stage  # noqa: E402
from redraft_train.recipe.restart import read_model, read_tokenizer  # noqa: E402  # noqa: E402
from redraft_train.recipe.stages import FINAL, PAIRS, adopt, taught, work  # noqa: E402
from redraft_train.recipe.teach import Distillation, every_source, groups, most  # noqa: E402
from redraft_train.recipe.tokenizer import load_tokenizer, train_tokenizer  # noqa: E402

EVERYDAY = [f"{who} {does} {what}." for who in ("I", "We") for does in ("have", "like") for what in ("a dog", "tea")]
SHAPE = Shape(300, hidden=32, layers=1, heads=1, feed_forward=32, head=32)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where stages are run, with a tokenizer."""
    pairs = {language: [Pair("one two", "ONE TWO", language, 1.0)] for language in LANGUAGES}
    train_tokenizer(pairs, SHAPE.vocabulary, 1_000).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def in_processes(*names: str) -> Callable[..., None]:
    """Return a `spawn` that makes processes only for the stages with these names: each imports torch for seconds."""

    def run(work: Callable[..., None], arguments: Sequence[Any], processes: int) -> None:
        folder = arguments[1]
        if folder.name in names:
            spawn(work, arguments, processes)
        else:
            work(0, *arguments, folder / "meet")

    return run


def small(monkeypatch) -> None:
    """Every stage of the recipe becomes one of a few steps and a toy's size, in this process."""
    monkeypatch.setattr(command, "spawn", in_processes())
    for name, stage in STAGES.items():
        phase = replace(stage.phase, tokens=3_000, batch=512)
        distillation = stage.distillation and replace(stage.distillation, sources=40)
        monkeypatch.setitem(STAGES, name, replace(stage, shape=SHAPE, phase=phase, distillation=distillation))


def recipe(out: Path, *arguments: str) -> Result:
    paths = ["--data", str(out), "--out", str(out)]
    return CliRunner().invoke(command.recipe, ["train", *paths, "--no-compile", *arguments])


class TestCommand:
    def test_one_command_makes_what_ships(self, out: Path, monkeypatch) -> None:
        """At toy size, from the data to the GGUF files; a second run finds all of it."""
        small(monkeypatch)
        write_pairs(out, toy_pairs(60))
        (out / "tokenizer.json").unlink()
        monkeypatch.setattr(command, "VOCABULARY", SHAPE.vocabulary)
        monkeypatch.setattr(command, "train_tokenizer", partial(train_tokenizer, characters_per_side=20_000))
        monkeypatch.setattr(command, "spawn", in_processes(DEFAULT_STAGES[0]))
        # A toy translates nothing, so here are examples.
        for teacher in ("demo", "teacher"):
            Packed.of([([1, 9, 4, 9, 2], 2), ([1, 10, 4, 10, 2], 2)]).save(out / f"{teacher}-examples.npz")
        done = recipe(out, "--processes", "1", "--format", "F16")
        assert done.exit_code == 0, done.output
        for name in DEFAULT_STAGES:
            assert (out / name / FINAL).exists()
            assert not (out / name / "last.pt").exists()
        for name in ("redraft-demo", "redraft-demo-tiny"):
            assert (out / f"{name}-f16.gguf").exists()
        again = recipe(out, "--no-export")
        assert again.output.count("finished before") == len(DEFAULT_STAGES)

    def test_it_stops_in_time_and_goes_on(self, out: Path, monkeypatch) -> None:
        small(monkeypatch)
        write_pairs(out, toy_pairs(60))
        hurried = recipe(out, "--only", "demo", "--minutes", "0.0001", "--processes", "1", "--no-export")
        assert "stage demo: out of time; run the same command again to resume" in hurried.output
        assert (out / "demo" / "last.pt").exists()
        assert recipe(out, "--only", "demo", "--processes", "1", "--no-export").exit_code == 0
        assert (out / "demo" / FINAL).exists()

    def test_stage_begins_with_model_that_ships(self, out: Path, monkeypatch) -> None:
        small(monkeypatch)
        write_pairs(out, toy_pairs(60))
        write_gguf(Decoder(SHAPE), load_tokenizer(out / "tokenizer.json"), out / "toy.gguf", "toy", {})
        monkeypatch.setattr(command, "shipped_path", lambda _name: out / "toy.gguf")
        done = recipe(out, "--only", "demo-q4", "--within", "0.001", "--processes", "1", "--no-export")
        assert done.exit_code == 0, done.output
        assert "stage demo-spoken: demo, the model that ships" in done.output
        assert (out / "demo-spoken" / FINAL).exists() and (out / "demo-q4" / FINAL).exists()
        train_tokenizer({"de": [Pair("other words", "ANDERE", "de", 1.0)]}, 270, 100).save(str(out / "tokenizer.json"))
        with pytest.raises(ModelError, match="has another vocabulary than"):
            adopt(out / "toy.gguf", out, "demo-spoken")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [(["--processes", "2"], "--processes must be 1 with --device cuda"), ([], "--device must be cpu here")],
        ids=["processes", "none"],
    )
    def test_gpu_that_cannot_be_used(self, out: Path, monkeypatch, arguments: list[str], words: str) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        done = recipe(out, "--device", "cuda", "--no-export", *arguments)
        assert done.exit_code == 2
        assert words in done.output

    def test_corpus_is_cleaned_before_processes_start(self, out: Path, monkeypatch) -> None:
        """Two processes would write the same file."""
        write_pairs(out, toy_pairs(60))
        seen: list[bool] = []
        monkeypatch.setattr(
            "redraft_train.recipe.__main__.spawn", lambda *_args, **_more: seen.append((out / PAIRS).exists())
        )
        assert recipe(out, "--only", "demo", "--no-export").exit_code == 0
        assert seen == [True]

    @pytest.mark.parametrize(("stage", "missing"), [("demo-mbr", "demo"), ("teacher", "demo-mbr")])
    def test_stage_that_is_missing_is_named(self, out: Path, stage: str, missing: str) -> None:
        result = recipe(out, "--only", stage)
        assert result.exit_code == 1
        assert f"Error: stage {missing!r} is not in" in result.output
        assert f"run it first, with --only {missing}" in result.output
        assert not (out / stage).exists()


class TestGraph:
    def test_every_stage_stands_after_those_that_it_needs(self) -> None:
        done: set[str] = set()
        for name, stage in STAGES.items():
            assert {stage.teacher, stage.start} - {None} <= done
            assert (stage.teacher is None) == (stage.distillation is None) == (stage.phase.distilled == 0)
            done.add(name)
        assert {"demo-spoken", "tiny-mbr"} == set(EXPORTED) & set(DEFAULT_STAGES) and set(EXPORTED) | set(
            DEFAULT_STAGES
        ) <= done

    def test_stage_begins_with_weights_of_another_one(self, out: Path) -> None:
        write_pairs(out, toy_pairs(60))
        begun = Decoder(SHAPE)
        (out / "demo").mkdir()
        torch.save({"shape": asdict(SHAPE), "model": begun.state_dict()}, out / "demo" / FINAL)
        still = replace(STAGES["demo"].phase, tokens=1, batch=256, rate=0.0, embedding_rate=0.0)
        stage = Stage(SHAPE, still, start="demo")
        work(0, stage, out / "after", out, out / "pairs.tsv.gz", Hardware(), None, out / "meet")
        ended = read_model(out / "after" / FINAL).state_dict()
        assert all(torch.equal(ended[name], value) for name, value in begun.state_dict().items())


class TestTeaching:
    def test_groups(self) -> None:
        asked = [Calibration("de", False, tuple(range(length))) for length in (9, 3, 4, 5, 8, 4, 30, 4)]
        found = [[len(each.prompt) for each in group] for group in groups(asked, 3 * (4 + most(4)))]
        assert found == [[3, 4, 4], [4], [5], [8], [9], [30]]

    def test_every_source_is_asked_for_in_every_language(self) -> None:
        pairs = {
            "de": [Pair("one", "EINS", "de", 0.5), Pair("two", "ZWEI", "de", 1.0)],
            "ja": [Pair("one", "\u4e00", "ja", 0.8)],
        }
        asked = every_source(pairs)
        assert {language: {(each.source, each.weight) for each in of} for language, of in asked.items()} == {
            language: {("one", 0.8), ("two", 1.0)} for language in pairs
        }
        assert {each.target for of in asked.values() for each in of} == {""}

    def test_examples_are_made_once_in_parts(self, out: Path, monkeypatch) -> None:
        """By the shipped tiny model, of everyday sentences."""
        model = shipped_path("demo-tiny")
        tokenizer = read_tokenizer(model)
        tokenizer.save(str(out / "tokenizer.json"))
        (out / "teacher").mkdir()
        network = read_model(model)
        torch.save({"shape": asdict(network.shape), "model": network.state_dict()}, out / "teacher" / FINAL)
        with gzip.open(out / "pairs.tsv.gz", "wt", encoding="utf-8") as cache:
            cache.writelines(
                f"0\t{language}\t1.0\teveryday\t{text}\t-\n" for language in LANGUAGES for text in EVERYDAY
            )
        stage = replace(STAGES["demo-taught"], distillation=Distillation(24, joined=0.0, samples=2))
        monkeypatch.setattr(teaching, "PART", 12)
        file = out / "teacher-examples.npz"
        assert taught(stage, out, out, Hardware(minutes=1e-6)) == file and not file.exists()  # stopped after a part
        assert len(list((out / "teacher-parts").glob("*.npz"))) == 1
        assert taught(stage, out, out, Hardware(processes=2)) == file
        made = Packed.load(file)
        assert len(made) >= 24
        end = tokenizer.token_to_id("</s>")
        for ids, start in made:
            assert tokenizer.id_to_token(ids[start]) in ("<2de>", "<2zh>", "<2ja>")
            assert ids[-1] == end
        assert len(list((out / "teacher-parts").glob("*.npz"))) == 2
        monkeypatch.setattr(teaching, "_part", None)
        file.unlink()
        assert list(Packed.load(taught(stage, out, out, Hardware(processes=2)) or file)) == list(made)
        assert taught(STAGES["demo"], out, out, Hardware()) is None


def test_packed_examples_are_those_that_went_in(tmp_path: Path) -> None:
    given = [([1, 65_535, 3], 1), ([4], 0), ([5, 6], 1)]
    packed = Packed.joined([Packed.of(given[:2]), Packed.of([]), Packed.of(given[2:])])
    packed.save(tmp_path / "examples.npz")
    again = Packed.load(tmp_path / "examples.npz")
    assert list(again) == given
    assert again[-1] == given[-1]
    assert len(again) == 3
    with pytest.raises(IndexError):
        again[3]
