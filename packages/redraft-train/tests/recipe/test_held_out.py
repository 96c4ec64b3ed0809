"""Figures of models on held-out pairs, and the make-up of the corpus."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from recipe.toys import toy_pairs, write_pairs  # noqa: E402
from redraft.models import shipped_path  # noqa: E402
from redraft_train.recipe import __main__ as command  # noqa: E402
from redraft_train.recipe.composition import composition, table  # noqa: E402
from redraft_train.recipe.corpus import Pair  # noqa: E402
from redraft_train.recipe.held_out import Watch, measure  # noqa: E402
from redraft_train.recipe.restart import read_model, read_tokenizer  # noqa: E402
from redraft_train.recipe.tokenizer import train_tokenizer  # noqa: E402


def test_measured_on_held_out_pairs() -> None:
    model = shipped_path("demo-tiny")
    right = Pair("I have a dog.", "Ich habe einen Hund.", "de", 1.0, "everyday")
    wrong = Pair("I have a dog.", "Gestern regnete es in Strömen.", "de", 1.0, "everyday")
    tokenizer = read_tokenizer(model)
    good, bad = (next(iter(measure(model, tokenizer, {"de": [pair] * 3}, 2))) for pair in (right, wrong))
    assert (good["pairs"], good["greedy"], good["empty"], good["unended"]) == (3, 2, 0, 0)
    assert good["loss"] < 1 < bad["loss"]
    assert good["chrf"] > 80 > bad["chrf"]


def test_evaluate_command(tmp_path: Path) -> None:
    rows = [f"1\t{of}\t1.0\t{kind}\tI have tea.\tTee.\n" for of in ("de", "zh", "ja") for kind in ("everyday", "talks")]
    with gzip.open(tmp_path / "pairs.tsv.gz", "wt", encoding="utf-8") as cache:
        cache.writelines(rows)
    paths = ["--data", str(tmp_path), "--out", str(tmp_path)]
    done = CliRunner().invoke(command.recipe, ["evaluate", "demo-tiny", *paths])
    assert done.exit_code == 0, done.output
    assert [(row["to"], row["pairs"]) for row in map(json.loads, done.output.splitlines())] == [
        ("de", 1),
        ("zh", 1),
        ("ja", 1),
    ]


def test_evaluate_refuses_first(tmp_path: Path) -> None:
    """Before the corpus is cleaned, which takes minutes."""
    (tmp_path / "text.gguf").write_text("text")
    paths = ["--data", str(tmp_path), "--out", str(tmp_path)]
    for model, code, words in (
        ("demo-small", 1, "model file 'demo-small' cannot be read: No such file or directory"),
        (str(tmp_path / "text.gguf"), 1, "cannot be read: GGUF magic invalid"),
        ("final.pt", 2, "there is no tokenizer.json in"),
    ):
        done = CliRunner().invoke(command.recipe, ["evaluate", "demo-tiny", model, *paths])
        assert done.exit_code == code
        assert words in done.output


def test_evaluate_makes_folder(tmp_path: Path) -> None:
    write_pairs(tmp_path, toy_pairs(30))
    paths = ["--data", str(tmp_path), "--out", str(tmp_path / "new"), "--kind", "talks"]
    done = CliRunner().invoke(command.recipe, ["evaluate", "demo-tiny", *paths])
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "new" / "pairs.tsv.gz").exists()


def test_pairs_too_long_for_training() -> None:
    model = shipped_path("demo-tiny")
    pairs = [Pair(text, "Tee.", "de", 1.0, "everyday") for text in ("I have tea. " * 90, "I have tea.")]
    (row,) = measure(model, read_tokenizer(model), {"de": pairs}, 2)
    assert (row["pairs"], row["greedy"]) == (1, 1)


def test_ids_by_kind() -> None:
    pairs = {"de": [Pair("one", "ONE", "de", 1.0, "everyday")] * 3 + [Pair("one", "ONE", "de", 0.1, "business")] * 30}
    tokenizer = train_tokenizer(pairs, 270, 1_000)
    length = len(tokenizer.encode("one").ids) + len(tokenizer.encode("ONE").ids) + 3
    found = composition(pairs, tokenizer)
    assert found["everyday"]["de"] == pytest.approx((3 * length, 3 * length))
    assert found["business"]["de"] == pytest.approx((30 * length, 3 * length))
    lines = list(table(found))
    assert lines[0] == "| | de |"
    assert any(line.startswith("| business |") and line.endswith("90.9% → 50.0% |") for line in lines)


def test_corpus_command(tmp_path: Path) -> None:
    write_pairs(tmp_path, toy_pairs(30))
    paths = ["corpus", "--data", str(tmp_path), "--out", str(tmp_path)]
    refused = CliRunner().invoke(command.recipe, paths)
    assert refused.exit_code == 2
    assert "there is no tokenizer.json in" in refused.output
    train_tokenizer(toy_pairs(30), 300, 1_000).save(str(tmp_path / "tokenizer.json"))
    shown = CliRunner().invoke(command.recipe, paths)
    assert shown.exit_code == 0, shown.output
    assert "100.0% → 100.0%" in shown.output


def test_watch_translates_as_measuring_does() -> None:
    """All at once or by length; texts that people do not say are left out."""
    model = shipped_path("demo-tiny")
    tokenizer = read_tokenizer(model)
    texts = ["We have 12 dogs.", "I have tea.", "He said that he was not at home on Monday.", "Thank you."]
    pairs = {"de": [Pair(text, "Ja, wir haben 12.", "de", 1.0, "talks") for text in texts], "ja": []}
    (row,) = measure(model, tokenizer, {"de": pairs["de"]}, len(texts))
    pairs["de"].append(Pair("A book of 12 pages.", "Ein Buch.", "de", 1.0, "prose"))
    found = Watch(tokenizer, pairs)(read_model(model).eval())
    assert found.keys() == {"de"}
    counts = found["de"]
    assert isinstance(counts, dict)
    assert (counts["chrf"], counts["with_number"], counts["with_negation"]) == (row["chrf"], 1, 1)
