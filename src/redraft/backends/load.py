"""From what a user types after ``--model`` to a backend."""

from __future__ import annotations

from pathlib import Path

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.errors import ModelError
from redraft.models import SHIPPED, shipped_path
from redraft.models.hub import cached_path


def resolve(name: str) -> Path:
    """The model file that a name stands for: a shipped model, a fetched one, or a path.

    Raises:
        ModelError: the name stands for nothing, or a known model has not been fetched yet.
    """
    if name in SHIPPED:
        return shipped_path(name)
    fetched = cached_path(name)
    if fetched is not None:
        return fetched
    try:
        path = Path(name).expanduser()
        unknown = not name or (not path.exists() and path.suffix.lower() != ".gguf")
    except (OSError, RuntimeError) as error:
        raise ModelError(f"model {name!r} cannot be a file: {error}") from error
    if unknown:
        raise ModelError(
            f"model {name!r} is neither a name nor a file: use {', '.join(SHIPPED)}, a name that `redraft models` "
            "lists, or the path of a GGUF file"
        )
    return path


def open_model(name: str, options: LlamaOptions = LlamaOptions()) -> LlamaCpp:
    """Load a model by name or path.

    Raises:
        ModelError: there is no such model, or its file is unfit.
    """
    return LlamaCpp(resolve(name), options)
