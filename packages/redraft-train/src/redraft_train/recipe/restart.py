"""Read weights and tokenizer from a GGUF written by `recipe.export`, to continue training, and add layers.

The file has no optimizer state; a warm-up restores it.  Nothing here needs llama.cpp, which a rented GPU lacks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import Tokenizer, models

from redraft.captions.metadata import PROMPT_KEY
from redraft.errors import ModelError
from redraft.models import SHIPPED, shipped_path
from redraft_train.recipe.export import LAYER_TENSORS
from redraft_train.recipe.model import Decoder, Shape
from redraft_train.recipe.tokenizer import blank_tokenizer


def model_file(name: str) -> Path:
    """Return the file of a model, which is the name of one that ships, or a path."""
    return shipped_path(name) if name in SHIPPED else Path(name).expanduser()


def open_gguf(path: Path) -> GGUFReader:
    """Open a GGUF of the recipe.

    Raises:
        ModelError: the file cannot be read, or was not made by the recipe.
    """
    try:
        changed = path.stat()
        reader = _read(path, changed.st_mtime_ns, changed.st_size)
    except (OSError, ValueError, IndexError, KeyError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"model file {str(path)!r} cannot be read: {reason}") from error
    architecture = reader.fields.get("general.architecture")
    if architecture is None or architecture.contents() != "qwen3" or PROMPT_KEY not in reader.fields:
        raise ModelError(
            f"model {path.name!r} was not made by this recipe: use demo, demo-tiny or a GGUF file that "
            "`python -m redraft_train.recipe train` or `python -m redraft_train.recipe align` has written"
        )
    return reader


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int, _size: int) -> GGUFReader:
    """Parse a file once, however often it is asked for: its vocabulary takes more than a second."""
    return GGUFReader(path)


def read_model(path: Path) -> Decoder:
    """Load a checkpoint (``.pt``) or a GGUF in torch; quantised weights are dequantised.

    Raises:
        ModelError: the file cannot be read, or was not made by the recipe.
    """
    if path.suffix == ".pt":
        if not path.is_file():
            raise ModelError(f"checkpoint {str(path)!r} does not exist")
        state = torch.load(path, map_location="cpu")
        model = Decoder(Shape(**state["shape"]))
        model.load_state_dict(state["model"])
        return model
    reader = open_gguf(path)
    tensors = {tensor.name: np.asarray(dequantize(tensor.data, tensor.tensor_type)) for tensor in reader.tensors}
    vocabulary, hidden = tensors["token_embd.weight"].shape
    shape = Shape(
        vocabulary,
        hidden,
        layers=_number(reader, "qwen3.block_count"),
        heads=_number(reader, "qwen3.attention.head_count"),
        feed_forward=_number(reader, "qwen3.feed_forward_length"),
        head=_number(reader, "qwen3.attention.key_length"),
    )
    state = {"embedding.weight": tensors["token_embd.weight"], "norm.weight": tensors["output_norm.weight"]}
    for layer in range(shape.layers):
        for ours, theirs in LAYER_TENSORS.items():
            state[f"layers.{layer}.{ours}.weight"] = tensors[f"blk.{layer}.{theirs}.weight"]
    model = Decoder(shape)
    model.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in state.items()})
    return model


def grow(model: Decoder, layers: int) -> Decoder:
    """Return a model of more layers that computes the same until it is trained.

    The new layers are spread evenly.  Each is a copy of the one before it with zero output projections, so it adds
    nothing at first; the projections have gradients, since their inputs are not zero.

    Raises:
        ModelError: the model has more than ``layers``.
    """
    old = model.shape.layers
    if layers < old:
        raise ModelError(f"a model of {old} layers cannot grow to {layers}")
    grown = Decoder(replace(model.shape, layers=layers), model.dropout)
    grown.embedding.load_state_dict(model.embedding.state_dict())
    grown.norm.load_state_dict(model.norm.state_dict())
    for place, layer in enumerate(grown.layers):
        source = place * old // layers
        layer.load_state_dict(model.layers[source].state_dict())
        if place and (place - 1) * old // layers == source:
            torch.nn.init.zeros_(layer.output.weight)
            torch.nn.init.zeros_(layer.down.weight)
    return grown


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a GGUF.

    Raises:
        ModelError: the file cannot be read, or was not made by the recipe.
    """
    reader = open_gguf(path)
    tokens, merges = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = blank_tokenizer(models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL])
    return tokenizer


_CONTROL = 3


def _number(reader: GGUFReader, key: str) -> int:
    return int(reader.fields[key].contents())
