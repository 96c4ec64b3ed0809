"""Weights ship only if they lose no more of what people say than those that they replace."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="recipe.txt of redraft-train is not installed")

from redraft.errors import ModelError  # noqa: E402
from redraft.models import shipped_path  # noqa: E402
from redraft_bench.eval.losses import LOSSES  # noqa: E402
from redraft_bench.eval.sets import TestSet  # noqa: E402
from redraft_train.recipe.average import average  # noqa: E402
from redraft_train.recipe.corpus import LANGUAGES  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.restart import read_model  # noqa: E402
from redraft_train.recipe.ship import counts, ship  # noqa: E402


def test_weights_that_lose_more_are_refused(tmp_path: Path) -> None:
    new, old = tmp_path / "new.gguf", tmp_path / "old.gguf"
    new.write_bytes(b"new")
    old.write_bytes(b"old")
    found = {file: {to: dict.fromkeys(LOSSES, 3) for to in LANGUAGES} for file in (new, old)}
    found[new]["ja"]["empty"] = 4
    found[new]["de"]["number_lost"] = 5
    with pytest.raises(ModelError, match="number lost 5 instead of 3 into de; empty 4 instead of 3 into ja"):
        ship(new, old, found.__getitem__)
    assert old.read_bytes() == b"old"
    found[old]["ja"]["empty"] = found[old]["de"]["number_lost"] = 9
    assert ship(new, old, found.__getitem__) == found[new]
    assert old.read_bytes() == b"new"


def test_counts_of_shipped_weights() -> None:
    def load(to: str) -> TestSet:
        references = {"de": "Ich habe einen Hund.", "zh": "我有一只狗。", "ja": "犬を飼っています。"}
        return TestSet("toy", ("i have a dog",), (references[to],))

    found = counts(shipped_path("demo-tiny"), load)
    assert set(found) == set(LANGUAGES)
    assert all(found[to]["empty"] == found[to]["wrong_language"] == 0 for to in found)


def test_average(tmp_path: Path) -> None:
    shape = Shape(40, hidden=32, layers=1, heads=1, feed_forward=32, head=32)
    files = []
    for number in range(3):
        model = Decoder(shape)
        files.append(tmp_path / f"{number}.pt")
        torch.save({"shape": asdict(shape), "model": model.state_dict()}, files[-1])
    average(files, tmp_path / "mean.pt")
    weights = [read_model(file).embedding.weight for file in files]
    assert torch.allclose(read_model(tmp_path / "mean.pt").embedding.weight, sum(weights) / 3)
    average(files[:2], tmp_path / "mostly.pt", (3, 1))
    assert torch.allclose(read_model(tmp_path / "mostly.pt").embedding.weight, 0.75 * weights[0] + 0.25 * weights[1])
    other = Decoder(Shape(40, hidden=32, layers=2, heads=1, feed_forward=32, head=32))
    torch.save({"shape": asdict(other.shape), "model": other.state_dict()}, tmp_path / "other.pt")
    with pytest.raises(ModelError, match="has another shape"):
        average([files[0], tmp_path / "other.pt"], tmp_path / "none.pt")
