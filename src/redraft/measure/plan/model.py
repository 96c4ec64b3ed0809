"""Sizes of a model that determine its speed and memory; no weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass

from redraft.backends.gguf_facts import gguf_facts
from redraft.backends.load import resolve
from redraft.errors import ModelError, OptionError
from redraft.models import SHIPPED
from redraft.models.hub import CATALOGUE
from redraft.models.shape import FORMATS, SHAPES

#: Bytes per number in the cache, which has 16 bits.
CACHE_BYTES = 2


@dataclass(frozen=True, slots=True)
class ModelSize:
    """Sizes of a decoder-only model.

    Attributes:
        name: the user's name for it.
        parameters: number of weights.
        weight_bytes: size of the weights in bytes.
        layers: number of layers.
        kv_heads: number of key/value heads per layer.
        head: size of a head.
        source: source of these numbers, for the list of assumptions.
    """

    name: str
    parameters: int
    weight_bytes: float
    layers: int
    kv_heads: int
    head: int
    source: str

    @property
    def cell_bytes(self) -> int:
        """Bytes per token in the cache: a key and a value in every layer."""
        return 2 * self.layers * self.kv_heads * self.head * CACHE_BYTES


def model_size(name: str, format: str) -> ModelSize:
    """Return the sizes of a named shape, or of a GGUF file by name or path.

    Args:
        name: name of a shape, or name or path of a model.
        format: weight format of a named shape, one of `FORMATS`; a file has its own.

    Raises:
        OptionError: the format is unknown.
        ModelError: the model is unknown, or its file lacks a size.
    """
    if format not in FORMATS:
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    if name in SHAPES and name not in SHIPPED:
        shape = SHAPES[name]
        size = shape.parameters * FORMATS[format] / 8
        source = f"shape as published, weights in {format}"
        return ModelSize(name, shape.parameters, size, shape.layers, shape.kv_heads, shape.head, source)
    known = ", ".join(dict.fromkeys((*SHAPES, *SHIPPED, *CATALOGUE)))
    try:
        path = resolve(name)
    except ModelError as error:
        if name in CATALOGUE:
            raise
        raise ModelError(f"model must be one of {known}, or the path of a GGUF file, not {name!r}") from error
    facts = gguf_facts(path)
    numbers = facts.layers, facts.kv_heads, facts.head
    return ModelSize(name, facts.parameters, facts.weight_bytes, *numbers, f"metadata of {path.name}")
