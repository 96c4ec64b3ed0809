"""Convert the weights of a GGUF to another format with llama.cpp's quantiser; needs no torch."""

from __future__ import annotations

import os
from pathlib import Path

from redraft.backends.engine import lib
from redraft.backends.llama_model import complaints
from redraft.errors import ModelError, OptionError
from redraft.models.disk import check_gguf

FORMATS = {
    "F32": lib.LLAMA_FTYPE_ALL_F32,
    "F16": lib.LLAMA_FTYPE_MOSTLY_F16,
    "BF16": lib.LLAMA_FTYPE_MOSTLY_BF16,
    "Q8_0": lib.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q4_0": lib.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q4_K_M": lib.LLAMA_FTYPE_MOSTLY_Q4_K_M,
}


def quantise(source: Path, target: Path, format: str) -> None:
    """Write the weights of ``source`` to ``target`` in one of `FORMATS`; a quantised source is dequantised first.

    Raises:
        OptionError: the format is unknown.
        ModelError: the source is invalid, or the target cannot be written.
    """
    if format not in FORMATS:
        raise OptionError(f"must be one of {', '.join(FORMATS)}, not {format!r}", "format")
    check_gguf(source)
    params = lib.llama_model_quantize_default_params()
    params.ftype = FORMATS[format]
    params.allow_requantize = True
    # Written to another file first: the engine maps the source into memory, which may be the same file.
    part = target.with_name(target.name + ".part")
    complaints()  # earlier ones
    status = lib.llama_model_quantize(os.fsencode(source), os.fsencode(part), params)
    if status == 0 and not target.is_dir():
        part.replace(target)
    else:
        part.unlink(missing_ok=True)
        raise ModelError(
            f"{str(source)!r} cannot be written as {format}: {'; '.join(complaints()) or 'unknown reason'}"
        )
