"""Sizes of a GGUF file's model from its metadata; llama.cpp opens it without its weights."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from redraft.backends.engine import lib
from redraft.backends.llama_model import check_gguf, complaints, forget_complaints
from redraft.errors import ModelError


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """Sizes of a model.

    Attributes:
        parameters: number of weights.
        weight_bytes: size of the weights in bytes.
        layers: number of layers.
        kv_heads: number of key/value heads per layer.
        head: size of a head.
    """

    parameters: int
    weight_bytes: int
    layers: int
    kv_heads: int
    head: int


def gguf_facts(path: Path) -> GgufFacts:
    """Return the sizes of the model in a file.

    Raises:
        ModelError: the file is missing or broken, or its metadata lack a size.
    """
    check_gguf(path)
    params = lib.llama_model_default_params()
    params.vocab_only = True
    forget_complaints()
    handle = lib.llama_model_load_from_file(os.fsencode(path), params)
    if not handle:
        raise ModelError(f"model file {str(path)!r} cannot be read: {next(iter(complaints()), 'broken file')}")
    try:
        kind = _text(handle, "general.architecture")
        heads = _number(handle, path, f"{kind}.attention.head_count")
        return GgufFacts(
            int(lib.llama_model_n_params(handle)),
            int(lib.llama_model_size(handle)),
            _number(handle, path, f"{kind}.block_count"),
            _number(handle, path, f"{kind}.attention.head_count_kv", heads),
            # Without an explicit head size, it is the hidden size divided by the number of heads.
            _number(handle, path, f"{kind}.attention.key_length", 0)
            or _number(handle, path, f"{kind}.embedding_length") // heads,
        )
    finally:
        lib.llama_model_free(handle)


def _number(handle: object, path: Path, key: str, default: int | None = None) -> int:
    text = _text(handle, key)
    if not text and default is not None:
        return default
    if not text.isdigit():
        raise ModelError(f"model file {str(path)!r} does not tell its size as one number: {key} is {text or 'missing'}")
    return int(text)


def _text(handle: object, key: str) -> str:
    """Return a metadata value as text; empty if it is missing."""
    buffer = ctypes.create_string_buffer(256)
    written = lib.llama_model_meta_val_str(handle, key.encode(), buffer, len(buffer))
    return buffer.value.decode(errors="replace") if written >= 0 else ""
