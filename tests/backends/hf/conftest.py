"""The shipped demo models in 32-bit floats: as folders for transformers, and as files for llama.cpp."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.backends.quantise import quantise
from redraft.models import SHIPPED, shipped_path

Paths = dict[str, Path]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Name of a shipped model -> its folder for transformers."""
    pytest.importorskip("gguf", reason="the train extra is not installed")
    from redraft.train.export_hf import gguf_to_hf

    above: Path = tmp_path_factory.mktemp("exported")
    for name in SHIPPED:
        gguf_to_hf(shipped_path(name), above / name)
    return {name: above / name for name in SHIPPED}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Name of a shipped model -> the GGUF with its weights unpacked."""
    above: Path = tmp_path_factory.mktemp("unpacked")
    for name in SHIPPED:
        quantise(shipped_path(name), above / f"{name}.gguf", "F32")
    return {name: above / f"{name}.gguf" for name in SHIPPED}
