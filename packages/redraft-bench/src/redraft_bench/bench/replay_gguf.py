"""Models for replays on llama.cpp."""

from __future__ import annotations

from redraft.backends.engine import lib
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.backends.quantise import FORMATS
from redraft.decoding.backend import Backend
from redraft.errors import OptionError
from redraft.signature import model_label


def open_gguf(name: str, context_length: int, device: str, threads: int) -> tuple[Backend, dict[str, object]]:
    """Load a model by name or path; return the backend and facts for the signature.

    Args:
        name: name or path of the model.
        context_length: ids per slot.
        device: one of `redraft.backends.hf.options.DEVICES`.
        threads: CPU threads; 0 tunes the number while running.

    Raises:
        OptionError: the device does not exist.
        ModelError: the model does not exist, or its file is invalid.
    """
    gpu = lib.llama_supports_gpu_offload()
    if device == "cuda" and not gpu:
        raise OptionError("device cuda is not available: use cpu or auto, or build llama-cpp-python with CUDA")
    layers = 0 if device == "cpu" else -1
    backend = open_model(name, LlamaOptions(context_length=context_length, threads=threads, gpu_layers=layers))
    known = backend.metadata
    architecture, file_type = known["general.architecture"], known.get("general.file_type", "unknown")
    quants = {str(number): quant for quant, number in FORMATS.items()} | {"32": "BF16"}
    return backend, {
        "model": model_label(backend.model.path),
        "shape": f"{architecture}-{known[f'{architecture}.block_count']}x{known[f'{architecture}.embedding_length']}",
        "quant": quants.get(file_type, f"type-{file_type}"),
        "engine": "llama.cpp",
        "device": "gpu" if gpu and layers else "cpu",
        "threads": threads or "adaptive",
    }
