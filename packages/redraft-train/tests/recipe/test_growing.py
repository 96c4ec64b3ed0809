"""A model with more layers computes the same until it is trained, and its new layers learn."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from recipe.toys import toy_pairs, write_pairs  # noqa: E402
from redraft.errors import ModelError  # noqa: E402
from redraft_train.recipe.loop import Hardware  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.recipe import STAGES, Stage  # noqa: E402
from redraft_train.recipe.restart import grow, read_model  # noqa: E402
from redraft_train.recipe.stages import FINAL, work  # noqa: E402
from redraft_train.recipe.tokenizer import train_tokenizer  # noqa: E402

SHAPE = Shape(300, hidden=32, layers=2, heads=1, feed_forward=64, head=32)
IDS = torch.tensor([[1, 5, 9, 260], [1, 7, 7, 2]])


def same(first: Decoder, second: Decoder) -> None:
    with torch.no_grad():
        torch.testing.assert_close(first.hidden(IDS), second.hidden(IDS))


@pytest.mark.parametrize("layers", [2, 3, 4, 5, 7])
def test_grown_model_computes_same(layers: int) -> None:
    torch.manual_seed(5)
    model = Decoder(SHAPE)
    grown = grow(model, layers)
    assert len(grown.layers) == grown.shape.layers == layers
    same(grown, model)
    silent = [not layer.output.weight.any() and not layer.down.weight.any() for layer in grown.layers]
    assert sum(silent) == layers - SHAPE.layers
    assert not silent[0]


def test_new_layers_have_gradients() -> None:
    grown = grow(Decoder(SHAPE), 3)
    grown.hidden(IDS).pow(3).sum().backward()
    assert all(layer.output.weight.grad.any() and layer.down.weight.grad.any() for layer in grown.layers)


def test_model_does_not_shrink() -> None:
    with pytest.raises(ModelError, match="a model of 2 layers cannot grow to 1"):
        grow(Decoder(SHAPE), 1)


def test_stage_grows_model_before(tmp_path: Path) -> None:
    pairs = toy_pairs(60)
    train_tokenizer(pairs, SHAPE.vocabulary, 1_000).save(str(tmp_path / "tokenizer.json"))
    write_pairs(tmp_path, pairs)
    begun = Decoder(SHAPE)
    (tmp_path / "small").mkdir()
    torch.save({"shape": asdict(SHAPE), "model": begun.state_dict()}, tmp_path / "small" / FINAL)
    still = replace(STAGES["teacher"].phase, tokens=1, batch=256, rate=0.0, embedding_rate=0.0, dropout=0.0)
    stage = Stage(replace(SHAPE, layers=3), still, start="small")
    work(0, stage, tmp_path / "large", tmp_path, tmp_path / "pairs.tsv.gz", Hardware(), None, tmp_path / "meet")
    ended = read_model(tmp_path / "large" / FINAL)
    assert ended.shape.layers == 3
    same(ended, begun)
