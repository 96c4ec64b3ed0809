"""From what a user types after ``--model`` to a backend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.errors import CapabilityError, ModelError
from redraft.method import Method
from redraft.models import SHIPPED, SMALL_OF, shipped_path
from redraft.models.hub import cached_path
from redraft.types import Backend

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


def open_models(method: Method, model: str, draft_model: str | None, options: LlamaOptions) -> list[Backend]:
    """The target and, for a method that drafts with a small model, that one.

    Args:
        draft_model: None takes the small model that ships beside ``model``, if there is one.

    Raises:
        ModelError: there is no such model, or its file is unfit.
        CapabilityError: a small model is needed and none is known.
    """
    small = draft_model or SMALL_OF.get(model)
    wanted = method.draft_model == "small"
    if wanted and small is None:
        raise CapabilityError(
            f"method {method.name!r} needs a small model of the vocabulary of {model!r}; name it with --draft-model"
        )
    if draft_model and not wanted:
        raise CapabilityError(f"method {method.name!r} drafts without a small model, so leave --draft-model out")
    branches = (
        max(options.branches, BRANCHES_OF_A_TREE * options.slots) if "trees" in method.needs else options.branches
    )
    opened: list[Backend] = [open_model(model, replace(options, branches=branches))]
    if wanted and small is not None:
        try:
            opened.append(open_model(small, replace(options, branches=0)))
        except BaseException:
            opened[0].close()
            raise
    return opened
