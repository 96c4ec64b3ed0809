"""The recipe's stages: averages of weights, what stages start from and learn of, what a warm start stands in for."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="the train extra is not installed")
pytest.importorskip("tokenizers", reason="the train extra is not installed")
pytest.importorskip("gguf", reason="the train extra is not installed")
pytest.importorskip("tqdm", reason="the train extra is not installed")

from redraft.errors import ModelError  # noqa: E402
from redraft.train import stages as running  # noqa: E402
from redraft.train.__main__ import train  # noqa: E402
from redraft.train.average import Average, average  # noqa: E402
from redraft.train.corpus import LANGUAGE_SHARES, LANGUAGES, Pair  # noqa: E402
from redraft.train.model import Decoder, Shape  # noqa: E402
from redraft.train.recipe import EXPORTED, STAGES, Stage  # noqa: E402
from redraft.train.restart import read_model  # noqa: E402
from redraft.train.stages import FINAL, checkpoint, origin, prepare  # noqa: E402
from redraft.train.tokenizer import train_tokenizer  # noqa: E402

SHAPE = Shape(300, hidden=32, layers=1, heads=1, feed_forward=32, head=32)


def save(file: Path, shape: Shape = SHAPE, seed: int = 0) -> dict[str, Any]:
    """A checkpoint with random weights, which are returned."""
    torch.manual_seed(seed)
    weights = Decoder(shape).state_dict()
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"shape": asdict(shape), "model": weights}, file)
    return weights


def trained(name: str) -> Stage:
    """A stage that is trained."""
    stage = STAGES[name]
    assert isinstance(stage, Stage)
    return stage


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where stages are run, with a tokenizer."""
    pairs = {language: [Pair("one two", "ONE TWO", language, 1.0)] for language in LANGUAGES}
    train_tokenizer(pairs, SHAPE.vocabulary, 1_000).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


class TestAverage:
    def test_it_is_the_weighted_mean_of_every_weight(self, tmp_path: Path) -> None:
        one, two = save(tmp_path / "one.pt", seed=1), save(tmp_path / "two.pt", seed=2)
        average({tmp_path / "one.pt": 0.75, tmp_path / "two.pt": 0.25}, tmp_path / "new" / FINAL)
        made = torch.load(tmp_path / "new" / FINAL)
        assert made["shape"] == asdict(SHAPE)
        assert made["model"].keys() == one.keys()
        for name, weight in made["model"].items():
            assert weight.dtype == torch.float32
            assert torch.equal(weight, 0.75 * one[name] + 0.25 * two[name])
        assert not torch.equal(one["embedding.weight"], two["embedding.weight"])
        assert [file.name for file in (tmp_path / "new").iterdir()] == [FINAL]

    def test_models_of_different_shapes_are_refused(self, tmp_path: Path) -> None:
        save(tmp_path / "one.pt")
        save(tmp_path / "two.pt", Shape(300, hidden=64, layers=1, heads=1, feed_forward=32, head=32))
        with pytest.raises(ModelError, match=r"one\.pt' and .*two\.pt' cannot be averaged: .* of one shape"):
            average({tmp_path / "one.pt": 0.5, tmp_path / "two.pt": 0.5}, tmp_path / "mean.pt")
        assert not (tmp_path / "mean.pt").exists()

    def test_the_command_writes_the_model_that_ships(self, out: Path) -> None:
        one, two = save(out / "late" / FINAL, seed=1), save(out / "steady" / FINAL, seed=2)
        result = CliRunner().invoke(train, ["--data", str(out), "--out", str(out), "--only", "demo", "--format", "F16"])
        assert result.exit_code == 0, result.output
        assert "stage demo: the average of late and steady" in result.output
        assert (out / "redraft-demo-f16.gguf").exists()
        for name, weight in read_model(out / "redraft-demo-f32.gguf").state_dict().items():
            torch.testing.assert_close(weight, 0.5 * one[name] + 0.5 * two[name])

    @pytest.mark.parametrize("more", [[], ["--warm-start", "tokenizer.json"]])
    def test_a_stage_that_is_missing_is_named(self, out: Path, more: list[str], monkeypatch) -> None:
        save(out / "late" / FINAL)
        monkeypatch.chdir(out)
        result = CliRunner().invoke(train, ["--data", ".", "--out", ".", "--only", "demo", *more])
        assert result.exit_code == 1
        assert "Error: stage 'steady' is not in '.': run it first, with --only steady" in result.output
        assert not (out / "demo").exists()


class TestGraph:
    def test_every_stage_stands_after_those_that_it_needs(self) -> None:
        done: set[str] = set()
        for name, stage in STAGES.items():
            if isinstance(stage, Average):
                assert set(stage.shares) <= done
                assert sum(stage.shares.values()) == pytest.approx(1)
                assert len({trained(part).shape for part in stage.shares}) == 1
            else:
                assert {stage.start, stage.teacher} - {None} <= done
                assert (stage.teacher is None) == (stage.distillation is None) == (stage.phase.distilled == 0)
                if stage.start:  # an average has no optimizers to go on with
                    assert stage.shape.layers % trained(stage.start).shape.layers == 0
                    assert replace(trained(stage.start).shape, layers=stage.shape.layers) == stage.shape
            done.add(name)
        assert set(EXPORTED) <= done


class TestOrigin:
    def test_a_warm_start_stands_in_for_what_is_missing_only(self, tmp_path: Path) -> None:
        given = tmp_path / "given.gguf"
        assert origin(tmp_path, "late", given) == given
        with pytest.raises(ModelError, match="stage 'late' is not in .*: run it first, with --only late"):
            origin(tmp_path, "late", None)
        save(tmp_path / "late" / FINAL)
        assert origin(tmp_path, "late", given) == origin(tmp_path, "late", None) == checkpoint(tmp_path, "late")

    def test_outputs_of_a_teacher_are_made_once(self, out: Path, monkeypatch) -> None:
        """By the same file at the same place, which is what `redraft.train.calibrate` knows them by."""
        save(out / "late" / FINAL)
        asked, learnt = [], []
        monkeypatch.setattr(running, "cached_split", lambda *_: ({"de": []}, {}))
        monkeypatch.setattr(
            running,
            "translate",
            lambda teacher, _pairs, *rest: asked.append((teacher.read_bytes(), teacher.name, *rest)),
        )
        monkeypatch.setattr(running, "distil", lambda _teacher, _answered, *rest: learnt.append(rest))
        prepare(trained("steady"), out / "steady", out, 1, None)
        [(_weights, name, shares, _distillation, outputs, _processes)] = asked
        [(_distillation, file, _processes)] = learnt
        assert name == "late-f32.gguf"
        assert shares == LANGUAGE_SHARES
        assert file == out / "steady" / "distilled.jsonl"
        assert outputs == out / "late-f32.outputs.jsonl"
        asked.clear()
        prepare(trained("late"), out / "late", out, 1, None)
        file.write_text("")
        prepare(trained("steady"), out / "steady", out, 1, None)
        assert asked == []

    def test_a_warm_start_teaches_where_the_teacher_is_missing(self, out: Path, monkeypatch) -> None:
        asked = []
        monkeypatch.setattr(running, "cached_split", lambda *_: ({}, {}))
        monkeypatch.setattr(running, "translate", lambda teacher, *rest: asked.append((teacher, rest[-2])))
        monkeypatch.setattr(running, "distil", lambda *_: None)
        prepare(trained("steady"), out / "steady", out, 1, out / "given.gguf")
        assert asked == [(out / "given.gguf", out / "given.outputs.jsonl")]
        with pytest.raises(ModelError, match="stage 'late' is not in"):
            prepare(trained("steady"), out / "steady", out, 1, None)
