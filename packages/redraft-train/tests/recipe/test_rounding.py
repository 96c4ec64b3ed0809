"""Training with rounded weights: the rounding is llama.cpp's, and the gradients reach the unrounded weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")

from gguf.quants import dequantize, quantize  # noqa: E402

from recipe.toys import toy_pairs  # noqa: E402
from redraft_bench.quantise import quantise  # noqa: E402
from redraft_train.recipe.examples import ExampleStream, Mixture  # noqa: E402
from redraft_train.recipe.export import write_gguf  # noqa: E402
from redraft_train.recipe.loop import Phase, Trainer  # noqa: E402
from redraft_train.recipe.model import Decoder, Shape  # noqa: E402
from redraft_train.recipe.rounding import BLOCK, q4_0, rounded  # noqa: E402
from redraft_train.recipe.tokenizer import train_tokenizer  # noqa: E402

SHAPE = Shape(300, hidden=32, layers=1, heads=1, feed_forward=64, head=32)
Q4_0 = gguf.GGMLQuantizationType.Q4_0


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    return np.array_equal(first.view(np.uint32), second.view(np.uint32))


class TestRounding:
    @pytest.mark.parametrize("scale", [1e-12, 1e-4, 0.02, 1.0, 300.0])
    def test_equals_gguf(self, scale: float) -> None:
        torch.manual_seed(1)
        weights = torch.randn(200, 4 * BLOCK) * scale
        assert same_bits(q4_0(weights).numpy(), dequantize(quantize(weights.numpy(), Q4_0), Q4_0))

    def test_equals_gguf_on_ties(self) -> None:
        weights = torch.randint(-8, 9, (500, BLOCK), generator=torch.Generator().manual_seed(2)) / 4
        weights[0] = 0
        assert same_bits(q4_0(weights).numpy(), dequantize(quantize(weights.numpy(), Q4_0), Q4_0))

    def test_equals_llama_cpp(self, tmp_path: Path) -> None:
        tokenizer = train_tokenizer(toy_pairs(50), SHAPE.vocabulary, 20_000)
        shape = replace(SHAPE, vocabulary=tokenizer.get_vocab_size())
        model = Decoder(shape)
        write_gguf(model, tokenizer, tmp_path / "full.gguf", "toy", {})
        quantise(tmp_path / "full.gguf", tmp_path / "small.gguf", "Q4_0")
        written = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "small.gguf").tensors}
        for ours, theirs in (
            ("query", "attn_q"),
            ("output", "attn_output"),
            ("gate", "ffn_gate"),
            ("down", "ffn_down"),
        ):
            tensor = written[f"blk.0.{theirs}.weight"]
            assert tensor.tensor_type == Q4_0
            expected = q4_0(getattr(model.layers[0], ours).weight.detach()).numpy()
            assert same_bits(np.asarray(dequantize(tensor.data, Q4_0)), expected)

    def test_weights_come_back(self) -> None:
        weights = torch.randn(4, BLOCK)
        before = weights.clone()
        with rounded([weights]):
            assert not torch.equal(weights, before)
            assert torch.equal(weights, q4_0(before))
        assert torch.equal(weights, before)


def test_training_rounds_matrices_only() -> None:
    """The loss is that of the rounded weights; what the optimizer keeps is not rounded."""
    pairs = toy_pairs(100)
    tokenizer = train_tokenizer(pairs, SHAPE.vocabulary, 20_000)
    phase = Phase(tokens=3_000, prefix=0.0, decay=0.0, batch=512, rate=0.0, embedding_rate=0.0, rounded=True)
    trainer = Trainer(replace(SHAPE, vocabulary=tokenizer.get_vocab_size()), phase)
    batch = next(iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=9)))
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    found = trainer.train_step(batch).item()
    assert all(torch.equal(value, before[name]) for name, value in trainer.model.state_dict().items())
    by_hand = Trainer(trainer.model.shape, replace(phase, rounded=False))
    matrices = {name for name in before if "norm" not in name and name != "embedding.weight"}
    by_hand.model.load_state_dict({name: q4_0(value) if name in matrices else value for name, value in before.items()})
    assert by_hand.train_step(batch).item() == found


def test_rounded_training_learns() -> None:
    pairs = toy_pairs(100)
    tokenizer = train_tokenizer(pairs, SHAPE.vocabulary, 20_000)
    phase = Phase(tokens=60_000, prefix=0.0, decay=0.5, batch=512, warmup_steps=5, rounded=True)
    trainer = Trainer(replace(SHAPE, vocabulary=tokenizer.get_vocab_size()), phase)
    stream = iter(ExampleStream(pairs, tokenizer, Mixture(0.0), 512, seed=9))
    losses = [trainer.train_step(next(stream)).item() for _ in range(60)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5
