"""Signatures that make figures reproducible: a line under each table, a field in each JSON row."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TextIO

from redraft import __version__
from redraft.backends.machine import processor
from redraft.models.disk import parts, sha256_of


@cache
def file_hash(path: Path) -> str:
    """Return the first 12 hex digits of a file's SHA-256."""
    return sha256_of(path)[:12]


def text_hash(text: str) -> str:
    """Return the first 12 hex digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def machine() -> dict[str, str]:
    """Return the signature's fields about the machine: system with number of cores, and processor."""
    return {
        "machine": f"{platform.system()}-{platform.machine()}-{os.cpu_count()}cores",
        "processor": processor().label,
    }


def model_label(path: Path) -> str:
    """Return a model's name and the hash of its files, its own or all in its folder; without files, only the name."""
    if not path.exists():
        return str(path)
    files = parts(path) if path.is_file() else sorted(file for file in path.iterdir() if file.is_file())
    if files == [path]:
        return f"{path.name}@{file_hash(path)}"
    return f"{path.name}@{text_hash(' '.join(f'{file.name} {file_hash(file)}' for file in files))}"


def signature(model: Path, data: str, data_hash: str, seed: int | None = None, **more: object) -> str:
    """Return one line such as ``redraft:0.1.0|model:demo.gguf@3f..|data:talk@9a..|ne:model-tokens,pooled|…``.

    Args:
        data_hash: `text_hash` of the data.
        seed: random seed; None if nothing is random.
        more: further settings of the run.
    """
    parts: Mapping[str, object] = {
        "redraft": __version__,
        "model": model_label(model),
        "data": f"{data}@{data_hash}",
        "ne": "model-tokens,pooled",
        **more,
        "seed": "none" if seed is None else seed,
        **machine(),
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def print_json(rows: Sequence[Mapping[str, object]], signature: str, file: TextIO) -> None:
    """Print a JSON object per row, with all fields and the signature."""
    for row in rows:
        file.write(json.dumps({**row, "signature": signature}, ensure_ascii=False) + "\n")
