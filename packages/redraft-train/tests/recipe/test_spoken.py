"""Training on what people say: patterns, whole utterances, and batches that keep what a model predicted before."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from recipe.toys import toy_pairs, write_pairs  # noqa: E402
from redraft.captions.sentence import ends_sentence  # noqa: E402
from redraft.captions.talk import load_talk  # noqa: E402
from redraft_bench.eval.losses import number_lost  # noqa: E402
from redraft_bench.eval.spoken import kept_back  # noqa: E402
from redraft_train.recipe.constructions import constructions, in_words, year_in_words  # noqa: E402
from redraft_train.recipe.corpus import LANGUAGES, Pair, read_pairs  # noqa: E402
from redraft_train.recipe.examples import Alternating, Batch, ExampleStream, Mixture  # noqa: E402
from redraft_train.recipe.loop import Hardware, Phase, Trainer  # noqa: E402
from redraft_train.recipe.loss import batch_loss, divergence_slope  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.recipe import STAGES, Stage  # noqa: E402
from redraft_train.recipe.stages import FINAL, work  # noqa: E402
from redraft_train.recipe.tokenizer import train_tokenizer  # noqa: E402

SHAPE = Shape(300, hidden=32, layers=1, heads=1, feed_forward=32, head=32)


@pytest.mark.parametrize(
    ("number", "words"),
    [(15, "fifteen"), (42, "forty two"), (350, "three hundred fifty"), (4500, "four thousand five hundred")],
)
def test_numbers_in_words(number: int, words: str) -> None:
    assert in_words(number) == words


@pytest.mark.parametrize(
    ("year", "words"),
    [(2015, "twenty fifteen"), (1905, "nineteen oh five"), (2007, "two thousand seven"), (1900, "nineteen hundred")],
)
def test_years_in_words(year: int, words: str) -> None:
    assert year_in_words(year) == words


def test_constructions_keep_numbers_and_are_not_the_talk() -> None:
    made = constructions(1500, seed=3)
    talk = {update.text.casefold().strip(" .") for update in load_talk() if update.final}
    for language in LANGUAGES:
        assert len(made[language]) >= 1500
        for pair in made[language]:
            assert ends_sentence(pair.source) and "{" not in pair.source + pair.target
            # Millions are counted otherwise in Chinese and Japanese.
            assert " million" in pair.source or not number_lost(pair.source, pair.target, language), pair
            assert pair.source.casefold().strip(" .") not in talk


def test_new_data(tmp_path: Path) -> None:
    """Two columns; share-alike files and what is kept back for tests are left out, turns that a test holds are used."""

    def write(path: Path, rows: Sequence[Sequence[str]]) -> None:
        path.parent.mkdir(exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.writelines("\t".join(row) + "\n" for row in rows)

    sources = [f"We have {number} dogs." for number in range(10, 60)]
    write(
        tmp_path / "train4" / "en-de.nicky-case.tsv.gz",
        [(each, each.replace("We have", "Wir haben")) for each in sources],
    )
    write(tmp_path / "train4" / "en-de.flare.BY-SA.tsv.gz", [("It is here.", "Hier ist es.")])
    held = [("I see.", "Ich verstehe."), ("This is in a test.", "Das steht in einem Test.")]
    write(tmp_path / "train" / "phrases-in-tests.en-de.tsv.gz", [(*each, "tatoeba", "CC0") for each in held])
    assert {pair.source for pair in read_pairs(tmp_path, "de")} == {
        "I see.",
        *(each for each in sources if not kept_back(each)),
    }


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[Pair]]:
    """Toy pairs, half of them everyday speech and some made from patterns."""
    return {
        language: [
            replace(pair, kind="everyday" if place % 2 else "constructions" if place % 10 == 0 else "prose")
            for place, pair in enumerate(of_language)
        ]
        for language, of_language in toy_pairs(200).items()
    }


def test_utterances_are_whole_and_have_a_mark(pairs: dict[str, list[Pair]]) -> None:
    tokenizer = train_tokenizer(pairs, SHAPE.vocabulary, 20_000)
    stream = ExampleStream(pairs, tokenizer, Mixture(0.5, said=1.0), 512, seed=1)
    wholes = {pair.target for of in pairs.values() for pair in of if pair.kind != "prose"}
    for batch in islice(stream, 20):
        for row, ids in enumerate(batch.ids):
            start = int(batch.columns[batch.rows == row][0])
            *sources, rest = tokenizer.decode(ids[:start].tolist()).split(".")
            assert not rest.strip()
            target = tokenizer.decode(ids[start:].tolist())
            assert target in wholes or len(sources) > 1
            assert len(target.replace(" ", "")) >= 2 * len(sources)


def test_anchored_batches_teach_nothing_new(pairs: dict[str, list[Pair]]) -> None:
    tokenizer = train_tokenizer(pairs, SHAPE.vocabulary, 20_000)
    batch = next(iter(ExampleStream(pairs, tokenizer, Mixture(0.5), 512, seed=2)))
    torch.manual_seed(0)
    model, other = Decoder(SHAPE), Decoder(SHAPE)
    same = Decoder(SHAPE)
    same.load_state_dict(model.state_dict())
    loss = batch_loss(model, batch, "cpu", divergence_slope, same)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-4)
    assert max(float(each.grad.abs().max()) for each in model.parameters()) < 1e-4
    assert batch_loss(model, batch, "cpu", divergence_slope, other).item() > 1e-3
    trainer = Trainer(SHAPE, Phase(tokens=512 * 60, prefix=0.5, decay=0.0, batch=512, warmup_steps=1, said=0.5))
    trainer.anchor(other)
    before = batch_loss(trainer.model, batch, "cpu", divergence_slope, other).item()
    for _ in range(30):
        trainer.train_step(replace(batch, anchored=True))
    assert batch_loss(trainer.model, batch, "cpu", divergence_slope, other).item() < before / 2


def test_batches_alternate(pairs: dict[str, list[Pair]]) -> None:
    tokenizer = train_tokenizer(pairs, SHAPE.vocabulary, 20_000)
    whole, other = (ExampleStream(pairs, tokenizer, Mixture(0.5, said=said), 512, seed=2) for said in (1.0, 0.0))
    drawn = [each.anchored for each in islice(Alternating(whole, other, 0.25), 8)]
    assert drawn == [True, True, True, False] * 2


@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_result_is_mean_of_weights(pairs: dict[str, list[Pair]], tmp_path: Path, monkeypatch: Any, kept: float) -> None:
    train_tokenizer(pairs, SHAPE.vocabulary, 20_000).save(str(tmp_path / "tokenizer.json"))
    write_pairs(tmp_path, toy_pairs(60))
    (tmp_path / "demo-taught").mkdir()
    begun = Decoder(SHAPE)
    torch.save({"shape": asdict(SHAPE), "model": begun.state_dict()}, tmp_path / "demo-taught" / FINAL)
    phase = replace(STAGES["demo-spoken"].phase, tokens=2048, batch=256, smoothed=100, warmup_steps=1)
    stage = Stage(SHAPE, phase, start="demo-taught", kept=kept)
    steps = []
    step = Trainer.train_step

    def recorded(trainer: Trainer, batch: Batch) -> Any:
        loss = step(trainer, batch)
        steps.append(trainer.model.embedding.weight.detach().clone())
        return loss

    monkeypatch.setattr(Trainer, "train_step", recorded)
    work(0, stage, tmp_path / "after", tmp_path, tmp_path / "pairs.tsv.gz", Hardware(), None, tmp_path / "meet")
    result = torch.load(tmp_path / "after" / FINAL)["model"]["embedding.weight"]
    assert not torch.allclose(steps[0], steps[-1], atol=1e-4)
    mean = kept * begun.embedding.weight.detach() + (1 - kept) * torch.stack(steps).mean(0)
    assert torch.allclose(result, mean, atol=1e-6)
