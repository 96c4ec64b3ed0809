"""The tiny demo model and a rougher copy of it in 32-bit floats: folders for transformers, files for llama.cpp."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.models import shipped_path
from redraft_bench.quantise import quantise

Paths = dict[str, Path]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Name -> GGUF: ``demo-tiny``, and ``rough``, a copy with noise in its weights, which agrees most of the time."""
    torch = pytest.importorskip("torch", reason="needs the extra hf")
    from redraft_train.recipe.export import write_gguf
    from redraft_train.recipe.restart import read_model, read_tokenizer

    tiny = shipped_path("demo-tiny")
    rough: Path = tmp_path_factory.mktemp("rough") / "rough.gguf"
    model = read_model(tiny)
    torch.manual_seed(0)
    with torch.no_grad():
        for matrix in (weights for weights in model.parameters() if weights.ndim == 2):
            matrix += 0.1 * matrix.std() * torch.randn_like(matrix)
    write_gguf(model, read_tokenizer(tiny), rough, "rough", {})
    return {"demo-tiny": tiny, "rough": rough}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory, models: Paths) -> Paths:
    """Name of a model -> its folder for transformers."""
    from redraft_train.recipe.export_hf import gguf_to_hf

    above: Path = tmp_path_factory.mktemp("exported")
    for name, file in models.items():
        gguf_to_hf(file, above / name)
    return {name: above / name for name in models}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, models: Paths) -> Paths:
    """Name of a model -> the GGUF with its weights unpacked."""
    above: Path = tmp_path_factory.mktemp("unpacked")
    for name, file in models.items():
        quantise(file, above / f"{name}.gguf", "F32")
    return {name: above / f"{name}.gguf" for name in models}
