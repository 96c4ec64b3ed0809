"""Write a GGUF of a given shape with random weights, to measure the cost of models that are not available.

Needs the ``gguf`` package.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from redraft.backends.quantise import quantise
from redraft.errors import MissingExtra, ModelError, OptionError, install
from redraft_bench.models.shape import FORMATS, Shape

if TYPE_CHECKING:
    from gguf import GGUFWriter

#: Standard deviation of the weights, as in initialised models.
SCALE = 0.02
#: Number of weights drawn at a time, which limits the additional memory.
CHUNK = 1 << 22
EPSILON = 1e-6
#: Ranges to which Gemma 2 limits its attention scores and its logits.
ATTENTION_SOFTCAP, LOGIT_SOFTCAP = 50.0, 30.0
#: Formats in which weights are drawn; the others are converted from F16.
_DRAWN = ("F16", "BF16")

#: Called with the current step and its progress from 0 to 1, or None if unknown.
Tell = Callable[[str, float | None], None]


def write_random(
    shape: Shape, path: Path, format: str, *, name: str, seed: int = 0, tell: Tell = lambda _what, _share: None
) -> None:
    """Write a model that llama.cpp can run, tensor by tensor, so that only the largest must fit into memory.

    Its tokenizer has the 256 bytes; all other ids are unused.

    Raises:
        OptionError: the format is unknown.
        MissingExtra: gguf is not installed.
        ModelError: the file cannot be written, or there is not enough disk space.
    """
    if format not in FORMATS:
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    drawn = format if format in _DRAWN else "F16"
    _check_place(path, bytes_needed(shape, format))
    # Written to another file first, so that a file of this name is always complete.
    part = path.with_name(path.name + ".drawn")
    try:
        _write_drawn(shape, part, drawn, name, seed, tell)
        if drawn == format:
            part.replace(path)
        else:
            tell(f"quantising to {format}", None)
            quantise(part, path, format)
    finally:
        part.unlink(missing_ok=True)


def bytes_needed(shape: Shape, format: str) -> int:
    """Return the maximum disk space in bytes needed while writing."""
    bits = FORMATS[format] if format in _DRAWN else FORMATS["F16"] + FORMATS[format]
    return round(shape.parameters * bits / 8) + 40 * shape.vocabulary


def _check_place(path: Path, needed: int) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise ModelError(f"the model must be written to a file in a folder that exists, not to {str(path)!r}")
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise ModelError(
            f"writing {path.name!r} takes {needed / 1e9:.1f} GB in {str(path.parent)!r}, where {free / 1e9:.1f} GB "
            "are free"
        )


def _write_drawn(shape: Shape, path: Path, format: str, name: str, seed: int, tell: Tell) -> None:
    try:
        import gguf
    except ImportError as error:
        raise MissingExtra(f"writing GGUF files needs the gguf extra: {install('gguf')}") from error
    writer = gguf.GGUFWriter(str(path), shape.architecture)
    writer.add_name(name)
    shape.describe(writer)
    writer.add_layer_norm_rms_eps(EPSILON)
    if shape.window:
        writer.add_sliding_window(shape.window)
    if shape.architecture == "gemma2":
        writer.add_attn_logit_softcapping(ATTENTION_SOFTCAP)
        writer.add_final_logit_softcapping(LOGIT_SOFTCAP)
    _add_tokenizer(writer, shape.vocabulary)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{format}"])
    kinds = {1: gguf.GGMLQuantizationType.F32, 2: gguf.GGMLQuantizationType[format]}
    for tensor, size in shape.tensors():
        kind = kinds[len(size)]
        width = gguf.GGML_QUANT_SIZES[kind][1]
        writer.add_tensor_info(tensor, size, np.dtype(np.float32), prod(size) * width, raw_dtype=kind)
    random, done = np.random.default_rng(seed), 0
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for _tensor, size in shape.tensors():
            tell("drawing weights", done / shape.parameters)
            writer.write_tensor_data(_matrix(random, size, format) if len(size) == 2 else np.ones(size, np.float32))
            done += prod(size)
    finally:
        writer.close()


def _matrix(random: np.random.Generator, size: tuple[int, ...], format: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return normally distributed weights in 16 bits; for BF16 as raw bits, since numpy does not support it."""
    weights = np.empty(prod(size), np.float16 if format == "F16" else np.uint16)
    for start in range(0, len(weights), CHUNK):
        drawn = random.standard_normal(min(CHUNK, len(weights) - start), np.float32)
        drawn *= SCALE
        weights[start : start + len(drawn)] = drawn if format == "F16" else drawn.view(np.uint32) >> 16
    return weights.reshape(size)


def _add_tokenizer(writer: GGUFWriter, size: int) -> None:
    """Add a SentencePiece vocabulary, which needs neither merges nor a pre-tokenizer."""
    from gguf import TokenType

    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256]
    unused = size - len(tokens)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + [f"<unused{number}>" for number in range(unused)])
    writer.add_token_scores([0.0] * size)
    writer.add_token_types(kinds + [TokenType.UNUSED] * unused)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
