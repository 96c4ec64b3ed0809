"""From what a user types after ``--model`` to a backend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from redraft.backends.hf.options import HfOptions
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.errors import CapabilityError, MissingExtra, ModelError
from redraft.method import Method
from redraft.models import SHIPPED, SMALL_OF, shipped_path
from redraft.models.hub import cached_path
from redraft.types import Backend

#: Before the name of a model of transformers, on the hub or in a folder.
HF_PREFIX = "hf:"
#: Further branches that the draft tree of one slot may have.
BRANCHES_OF_A_TREE = 15


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


def open_backend(name: str, options: LlamaOptions = LlamaOptions()) -> Backend:
    """Load a model by name or path on the backend that runs it: transformers for ``hf:NAME`` or a folder, or llama.cpp.

    Of the options, transformers is given those that it knows; without layers for the GPU it runs on the CPU.

    Raises:
        ModelError: there is no such model, or its files are unfit.
        MissingExtra: transformers is needed and not installed.
    """
    folder = _folder(name.removeprefix(HF_PREFIX))
    if folder is None and not name.startswith(HF_PREFIX):
        return open_model(name, options)
    try:
        from redraft.backends.hf.model import open_hf
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"model {name!r} needs {error.name}, which is not installed: pip install 'redraft[hf]'"
        ) from error
    device = "auto" if options.gpu_layers else "cpu"
    known = HfOptions(options.context_length, options.slots, device=device, threads=options.threads)
    return open_hf(str(folder or name.removeprefix(HF_PREFIX)), known)


def _folder(name: str) -> Path | None:
    """The folder of a model of transformers, if the name is that of one."""
    try:
        path = Path(name).expanduser()
        return path if name and (path / "config.json").is_file() else None
    except (OSError, RuntimeError):  # no name of a file
        return None


def open_models(method: Method, model: str, draft_model: str | None, options: LlamaOptions) -> list[Backend]:
    """The target and, for a method that drafts with a small model, that one.

    Args:
        draft_model: None takes the small model that ships beside ``model``, if there is one.

    Raises:
        ModelError: there is no such model, or its file is unfit.
        CapabilityError: a small model is needed and none is known.
    """
    small = SMALL_OF.get(model) if draft_model is None else draft_model
    wanted = method.draft_model == "small"
    if wanted and small is None:
        raise CapabilityError(
            f"method {method.name!r} needs a small model of the vocabulary of {model!r}; name it with --draft-model"
        )
    if draft_model is not None and not wanted:
        raise CapabilityError(f"method {method.name!r} drafts without a small model, so leave --draft-model out")
    branches = (
        max(options.branches, BRANCHES_OF_A_TREE * options.slots) if "trees" in method.needs else options.branches
    )
    opened = [open_backend(model, replace(options, branches=branches))]
    if wanted and small is not None:
        try:
            opened.append(open_backend(small, replace(options, branches=0)))
        except BaseException:
            opened[0].close()
            raise
    return opened
