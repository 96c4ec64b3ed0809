"""Weights ship only if they lose no more of what people say, beyond chance, than those that they replace."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")

from redraft.errors import ModelError  # noqa: E402
from redraft.models import shipped_path  # noqa: E402
from redraft_bench.eval.losses import LOSSES  # noqa: E402
from redraft_bench.eval.sets import TestSet  # noqa: E402
from redraft_train.recipe.average import average  # noqa: E402
from redraft_train.recipe.corpus import LANGUAGES  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.restart import read_model  # noqa: E402
from redraft_train.recipe.ship import by_chance, lost_by, ship  # noqa: E402


def lost(**places: tuple[int, ...]) -> dict[str, dict[str, frozenset[int]]]:
    """What weights lose in German; nothing in other languages."""
    nothing = dict.fromkeys(LOSSES, frozenset[int]())
    return dict.fromkeys(LANGUAGES, nothing) | {
        "de": nothing | {name: frozenset(found) for name, found in places.items()}
    }


def test_weights_that_lose_more_are_refused(tmp_path: Path) -> None:
    new, old = tmp_path / "new.gguf", tmp_path / "old.gguf"
    new.write_bytes(b"new")
    old.write_bytes(b"old")
    five, six = tuple(range(5)), tuple(range(10, 16))
    found = {new: lost(empty=five, number_lost=(*six, 1)), old: lost(number_lost=(1, 2))}
    with pytest.raises(ModelError, match="empty 5 instead of 0 into de"):
        ship(new, old, found.__getitem__)
    assert old.read_bytes() == b"old"
    # Four new ones may be due to chance, and so may six where three others are mended.
    found = {new: lost(empty=five[:4], number_lost=six), old: lost(number_lost=(1, 2, 3))}
    assert ship(new, old, found.__getitem__)["de"]["number_lost"] == 6
    assert old.read_bytes() == b"new"


@pytest.mark.parametrize(("more", "fewer", "probability"), [(0, 0, 1.0), (1, 0, 0.5), (5, 0, 1 / 32), (3, 1, 5 / 16)])
def test_by_chance(more: int, fewer: int, probability: float) -> None:
    assert by_chance(more, fewer) == pytest.approx(probability)


def test_losses_of_shipped_weights() -> None:
    def load(to: str) -> TestSet:
        references = {"de": "Ich habe einen Hund.", "zh": "我有一只狗。", "ja": "犬を飼っています。"}
        return TestSet("toy", ("i have a dog",), (references[to],))

    found = lost_by(shipped_path("demo-tiny"), load)
    assert set(found) == set(LANGUAGES)
    assert not any(found[to]["empty"] or found[to]["wrong_language"] for to in found)


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
