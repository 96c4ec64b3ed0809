"""Prefix training of a model of the recipe: what tells runs apart, and what is held out."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")
pytest.importorskip("gguf", reason="the train extra is not installed")
pytest.importorskip("tqdm", reason="the train extra is not installed")

from recipe.calibrate import Calibration
from recipe.corpus import LANGUAGES, held_out
from recipe.distil import Distillation
from recipe.prefix import Settings, fingerprint, held_out_pairs, training_pairs
from redraft.errors import ModelError, OptionError
from redraft.finetune.prefixes import Cuts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "train").mkdir()
    for language in LANGUAGES:
        with gzip.open(tmp_path / "train" / f"en-{language}.tsv.gz", "wt", encoding="utf-8") as file:
            for number in range(2000 if language == "de" else 0):
                label = "tatoeba" if number % 2 else "bible:BSB"
                file.write(f"line {number} of the file\tZeile {number} der Datei\t{label}\tCC0\n")
                file.write(f"short {number}\tkurz {number}\t{label}\tCC0\n")
    return tmp_path


def test_long_enough_pairs_are_held_out_and_everyday_ones_first(data: Path) -> None:
    pairs = held_out_pairs(data, "de", 8, seed=0)
    assert len({pair.source for pair in pairs}) == 8
    assert all(held_out(pair.source) and pair.source.startswith("line") for pair in pairs)
    assert sum(pair.weight == 1 for pair in pairs) > 4
    assert held_out_pairs(data, "de", 8, seed=0) == pairs
    assert held_out_pairs(data, "de", 8, seed=1) != pairs
    assert held_out_pairs(data, "ja", 8, seed=0) == []
    assert not {pair.source for pair in pairs} & {pair.source for pair in training_pairs(data, ["de"])["de"]}
    with pytest.raises(OptionError, match="too few pairs of language 'ja'"):
        training_pairs(data, ["de", "ja"])


def test_runs_are_told_apart_by_all_that_changes_what_is_learnt(tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"one")
    first = Settings(model, tmp_path, tmp_path / "out.gguf", ("de",), 1000, 0.5, Distillation(10))
    same = [replace(first, out=tmp_path / "other.gguf"), replace(first, format="F32")]
    others = [
        replace(first, tokens=1001),
        replace(first, share=0.6),
        replace(first, languages=("ja",)),
        replace(first, distillation=Distillation(10, cuts=Cuts(tolerance=1.0))),
        replace(first, distillation=Distillation(10, seed=1)),
    ]
    assert {fingerprint(each) for each in same} == {fingerprint(first)}
    assert len({fingerprint(each) for each in [first, *others]}) == 6
    before = fingerprint(first)
    model.write_bytes(b"two")
    assert fingerprint(first) != before


def test_a_model_that_ends_nothing(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recipe import prefix as training
    from recipe.export import write_gguf
    from recipe.model import Decoder, Shape
    from recipe.tokenizer import train_tokenizer

    pairs = training_pairs(data, ["de"])
    tokenizer = train_tokenizer(dict.fromkeys(LANGUAGES, pairs["de"]), 300, 5_000)
    write_gguf(Decoder(Shape(300, 32, 1, 1, 32, 32)), tokenizer, tmp_path / "old.gguf", "toy", {})
    monkeypatch.setattr(training, "translate", lambda *_: [Calibration("de", False, (1, 2))])
    asked = Settings(tmp_path / "old.gguf", data, tmp_path / "new.gguf", ("de",), 1000, 0.5, Distillation(10))
    with pytest.raises(ModelError, match="model 'old.gguf' has finished none of its 1 outputs"):
        training.train_prefix(asked)
    with pytest.raises(ModelError, match="none.gguf' does not exist"):
        training.train_prefix(replace(asked, model=tmp_path / "none.gguf"))
