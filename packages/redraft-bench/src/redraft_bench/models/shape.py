"""Shapes of models for measurements with random weights: the cost of a pass depends on sizes, not on trained weights.

`redraft_bench.models.random_gguf` writes a GGUF of a shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gguf import GGUFWriter

#: Weight format -> maximum bits per weight, with scales and with the larger format of embeddings.
FORMATS = {"F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5, "Q4_0": 5.5, "Q4_K_M": 5.5}


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of a decoder-only transformer with grouped-query attention and gated feed-forward layers.

    Attributes:
        architecture: ``qwen3`` or ``gemma2``.
        layers: number of layers.
        hidden: hidden size.
        heads: number of query heads.
        kv_heads: number of key/value heads.
        head: size of a head.
        feed_forward: inner size of the feed-forward layers.
        vocabulary: number of ids.
        context: context length in training.
        tied: whether the embeddings are also the output layer.
        window: attention window of every other layer; 0 for full attention.
    """

    architecture: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    feed_forward: int
    vocabulary: int
    context: int
    tied: bool = True
    window: int = 0

    def describe(self, writer: GGUFWriter) -> None:
        """Add the sizes to a GGUF."""
        writer.add_context_length(self.context)
        writer.add_embedding_length(self.hidden)
        writer.add_block_count(self.layers)
        writer.add_feed_forward_length(self.feed_forward)
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(self.kv_heads)
        writer.add_key_length(self.head)
        writer.add_value_length(self.head)

    def hf_settings(self) -> dict[str, int | bool]:
        """Return the sizes as settings of a transformers configuration."""
        window = {"sliding_window": self.window} if self.window else {}
        return {
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head,
            "intermediate_size": self.feed_forward,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "tie_word_embeddings": self.tied,
            **window,
        }

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield GGUF name and shape of each tensor, (outputs, inputs) or (size,)."""
        yield "token_embd.weight", (self.vocabulary, self.hidden)
        yield "output_norm.weight", (self.hidden,)
        if not self.tied:
            yield "output.weight", (self.vocabulary, self.hidden)
        for layer in range(self.layers):
            for name, size in self._layer():
                yield f"blk.{layer}.{name}.weight", size

    def _layer(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        queries, keys = self.heads * self.head, self.kv_heads * self.head
        yield "attn_norm", (self.hidden,)
        yield "attn_q", (queries, self.hidden)
        yield "attn_k", (keys, self.hidden)
        yield "attn_v", (keys, self.hidden)
        yield "attn_output", (self.hidden, queries)
        yield "ffn_norm", (self.hidden,)
        yield "ffn_gate", (self.feed_forward, self.hidden)
        yield "ffn_up", (self.feed_forward, self.hidden)
        yield "ffn_down", (self.hidden, self.feed_forward)
        further = {
            "qwen3": {"attn_q_norm": self.head, "attn_k_norm": self.head},
            "gemma2": {"post_attention_norm": self.hidden, "post_ffw_norm": self.hidden},
        }
        for name, size in further[self.architecture].items():
            yield name, (size,)

    @property
    def parameters(self) -> int:
        """Number of weights; tied embeddings count once."""
        return sum(prod(size) for _name, size in self.tensors())


#: From the models' published configurations; ``tiny`` is for tests.
SHAPES = {
    "tiny": Shape("qwen3", 2, 256, 4, 2, 64, 512, 1024, 2048),
    "qwen3-0.6b": Shape("qwen3", 28, 1024, 16, 8, 128, 3072, 151_936, 40_960),
    "qwen3-1.7b": Shape("qwen3", 28, 2048, 16, 8, 128, 6144, 151_936, 40_960),
    "qwen3-4b": Shape("qwen3", 36, 2560, 32, 8, 128, 9728, 151_936, 40_960),
    "qwen3-8b": Shape("qwen3", 36, 4096, 32, 8, 128, 12_288, 151_936, 40_960, tied=False),
    "tower-2b": Shape("gemma2", 26, 2304, 8, 4, 256, 9216, 256_000, 8192, window=4096),
    "tower-9b": Shape("gemma2", 42, 3584, 16, 8, 256, 14_336, 256_000, 8192, window=4096),
}
