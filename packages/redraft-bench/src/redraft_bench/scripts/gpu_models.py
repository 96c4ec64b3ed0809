"""Random models in the shapes of Qwen3, on any device, with a tokenizer of bytes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.model import backend_of
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import HfOptions

END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model in the form of Qwen3.

    Attributes:
        tied: whether embeddings and head share their weights.
    """

    hidden: int
    inner: int
    layers: int
    heads: int
    shared_heads: int = 8
    head: int = 128
    vocabulary: int = 151936
    tied: bool = True


#: Name -> shape, the most important first.
SHAPES = {
    "1.7B": Shape(2048, 6144, 28, 16),
    "8B": Shape(4096, 12288, 36, 32, tied=False),
    "0.6B": Shape(1024, 3072, 28, 16),
    "4B": Shape(2560, 9728, 36, 32),
    "toy": Shape(64, 128, 2, 4, 2, 16, 512),
}
#: The model whose ids are compared.
SMALL = Shape(256, 512, 4, 4, 2, 64, 512, tied=False)


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose tokens are bytes, and an end."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)


def model_of(shape: Shape, device: str, dtype: str, scale: float = 0.02) -> Any:
    """Return a model with random weights."""
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.shared_heads,
        head_dim=shape.head,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=40960,
        initializer_range=scale,
        dtype=getattr(torch, dtype),
        eos_token_id=256,
        bos_token_id=None,
        pad_token_id=None,
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(device):
            return Qwen3ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def opened(shape: Shape, device: str, dtype: str = "bfloat16", slots: int = 64) -> HfDecoder:
    """Return the backend of a random model."""
    return HfDecoder(
        model_of(shape, device, dtype), HfTokenizer(tokenizer()), "random", HfOptions(2048, slots, dtype, device)
    )


def copied(model: Any, device: str) -> HfDecoder:
    """Return the backend of a copy of a model in 32-bit floats."""
    found = backend_of(deepcopy(model).to(device), tokenizer(), "random", HfOptions(256, 2, "float32", device))
    assert isinstance(found, HfDecoder)  # noqa: S101 - Qwen3 is one
    return found


def gigabytes(backend: HfDecoder) -> float:
    """Return the size of the weights that a pass reads: all but the table of embeddings, unless it is the head too."""
    read = sum(weights.numel() * weights.element_size() for weights in backend.model.parameters())
    table = backend.model.get_input_embeddings().weight
    if table is not backend.model.get_output_embeddings().weight:
        read -= table.numel() * table.element_size()
    return read / 1e9
