"""Shapes of models that are measured with random weights: what a pass costs depends on sizes, not on what was learnt.

`redraft.backends.random_gguf` writes a file of a shape, `redraft.measure.bench.replay_hf` makes a model of
transformers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

#: Format of weights -> bits of one, at most, with scales and with the larger format that embeddings get.
FORMATS = {"F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5, "Q4_0": 5.5, "Q4_K_M": 5.5}


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a decoder-only transformer with grouped heads and gated feed-forward layers.

    Attributes:
        architecture: ``qwen3`` or ``gemma2``.
        layers, hidden: number of layers, and size of what they pass on.
        heads, kv_heads, head: query heads, key/value heads, and size of each.
        feed_forward: inner size.
        vocabulary: number of ids.
        context: ids that the model was trained for.
        tied: whether the embeddings are the output layer too.
        window: ids that every other layer sees back; 0 where all see everything.
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

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name in a GGUF and shape, (outputs, inputs) or (size,), of every tensor."""
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
        """How many weights there are; tied embeddings count once."""
        return sum(prod(size) for _name, size in self.tensors())


#: From the configurations that were published with the models; ``tiny`` is for trying things out.
SHAPES = {
    "tiny": Shape("qwen3", 2, 256, 4, 2, 64, 512, 1024, 2048),
    "qwen3-0.6b": Shape("qwen3", 28, 1024, 16, 8, 128, 3072, 151_936, 40_960),
    "qwen3-1.7b": Shape("qwen3", 28, 2048, 16, 8, 128, 6144, 151_936, 40_960),
    "qwen3-4b": Shape("qwen3", 36, 2560, 32, 8, 128, 9728, 151_936, 40_960),
    "qwen3-8b": Shape("qwen3", 36, 4096, 32, 8, 128, 12_288, 151_936, 40_960, tied=False),
    "tower-2b": Shape("gemma2", 26, 2304, 8, 4, 256, 9216, 256_000, 8192, window=4096),
    "tower-9b": Shape("gemma2", 42, 3584, 16, 8, 256, 14_336, 256_000, 8192, window=4096),
}
