"""Open backends by model name, as given to ``--model``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from redraft.backends.llama_model import on_gpu
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import (
    LLAMA,
    NOTHING,
    SMALL_MODEL,
    HfOptions,
    LlamaOptions,
    RemoteOptions,
    options_of,
    taken_by,
)
from redraft.backends.remote.address import KEY_VARIABLE, Address, is_remote
from redraft.cores import usable_cores
from redraft.decoding.backend import Backend, Capability
from redraft.decoding.method import Method, Value
from redraft.decoding.types import DRAFT_MODEL, TARGET, Prompt
from redraft.errors import CapabilityError, ModelError, from_extra, nearest
from redraft.models import SHIPPED, SMALL_OF, shipped_path
from redraft.models.disk import is_on_disk, models_on_disk, path_on_disk, size_of
from redraft.models.hub import CATALOGUE, cached_path

if TYPE_CHECKING:
    from redraft.backends.hf.decoder_only import HfDecoder
    from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
    from redraft.captions.languages import Language


@runtime_checkable
class MakesPrompts(Protocol):
    """A backend whose model has an encoder, and which makes its own prompts."""

    def encoder_prompt(self, text: str, source: Language, target: Language) -> Prompt:
        """Return the input of encoder and decoder for translating ``text``."""

    def plain_prompt(self, text: str) -> Prompt:
        """Return the input of encoder and decoder for a text."""


def backends_of(
    method: Method, options: Mapping[str, Value], target: Backend, small: Backend | None, stack: ExitStack
) -> dict[str, Backend]:
    """Return the models of a method by name (`TARGET`, `DRAFT_MODEL`).

    Args:
        small: the draft model, for methods that need one.
        stack: closes what is made here: a model of the target's first layers.

    Raises:
        CapabilityError: the target lacks what the method needs, the draft model is missing, or its vocabulary differs
            from the target's.
    """
    method.require(target.capabilities)
    if Capability.EARLY_EXIT in method.needs:
        exits: Any = target
        small = exits.early_exit(int(options["layers"]))
        stack.callback(small.close)
    elif not method.small_model:
        return {TARGET: target}
    elif small is None:
        raise CapabilityError(
            f"method {method.name!r} needs a small model with the same vocabulary; name it with --draft-model"
        )
    else:
        check_same_vocabulary(target, small)
    return {TARGET: target, DRAFT_MODEL: small}


def check_same_vocabulary(target: Backend, small: Backend) -> None:
    """Raise `CapabilityError`, which says where, if the vocabularies of two models differ."""
    sizes = target.vocabulary_size, small.vocabulary_size
    if sizes[0] != sizes[1]:
        raise CapabilityError(
            f"the small model has {sizes[1]} tokens and the target {sizes[0]}; they must share one vocabulary"
        )
    for token in range(sizes[0]):
        if target.token_bytes(token) != small.token_bytes(token):
            raise CapabilityError(f"the small model's vocabulary differs from the target's, first at token {token}")
    if target.end_tokens != small.end_tokens:
        raise CapabilityError("the small model and the target must have the same end tokens")


#: Prefix of the names of transformers models, on the hub or in a folder.
HF_PREFIX = "hf:"
_MODELS_OF_LLAMA_CPP = f"{', '.join(SHIPPED)}, a name that `redraft models` lists, or the path of a GGUF file"
#: Most engines that wait for a server at the same time, unless the operator sets another number.
CONNECTIONS = 32
#: Further branches of one slot's draft tree.
BRANCHES_OF_A_TREE = 15


def resolve(name: str) -> Path:
    """Return the file of a model: a shipped one, a downloaded one, one of Ollama or LM Studio, or a path.

    Raises:
        ModelError: the name is unknown, or a listed model has not been downloaded yet.
    """
    if name in SHIPPED:
        return shipped_path(name)
    if is_remote(name):
        raise ModelError(f"model {name!r} is on a server, but a file is needed: use {_MODELS_OF_LLAMA_CPP}")
    if is_on_disk(name):
        return path_on_disk(name)
    fetched = cached_path(name, CATALOGUE)
    if fetched is not None:
        return fetched
    path = _path(name)
    if not name or not (os.path.exists(path) or path.suffix.lower() == ".gguf"):  # noqa: PTH110  # false for bad names
        near = nearest(name, (*SHIPPED, *CATALOGUE, *models_on_disk()))
        raise ModelError(f"model {name!r} is neither a name nor a file{near}: use {_MODELS_OF_LLAMA_CPP}")
    return path


def on_transformers(name: str) -> bool:
    """Whether a name is a transformers model: ``hf:NAME``, or a folder with a configuration."""
    return name.startswith(HF_PREFIX) or (not is_remote(name) and _folder(name) is not None)


def gguf_file(name: str) -> Path:
    """Return the file of a model for llama.cpp; raise `ModelError` if it does not exist or is for transformers."""
    if on_transformers(name):
        raise ModelError(f"model {name!r} is for transformers, but one for llama.cpp is needed: {_MODELS_OF_LLAMA_CPP}")
    return resolve(name)


def open_model(name: str, options: LlamaOptions = LLAMA) -> LlamaCpp:
    """Load a model by name or path on llama.cpp.  Raises as `gguf_file`, and `ModelError` if its file is invalid."""
    return LlamaCpp(gguf_file(name), options)


def default_contexts(name: str, engine: Mapping[str, Value] = NOTHING) -> int:
    """Return the best number of contexts for many slots: one per core for small models on the CPU, otherwise one.

    With a large model, each context would read all weights from memory.  A server batches concurrent requests itself.

    Raises:
        ModelError: the model does not exist.
    """
    if is_remote(name):
        return CONNECTIONS
    small = size_of(resolve(name)) <= SMALL_MODEL
    return usable_cores() if small and not on_gpu(int(engine.get("gpu_layers", -1))) else 1


def open_contexts(name: str, options: LlamaOptions, count: int) -> list[LlamaCpp]:
    """Load a model on llama.cpp in several contexts that share its weights and the cores.

    Args:
        name: name or path of the model.
        options: options of each context; without ``threads`` each gets its share of the cores.
        count: number of contexts, at least 1; the first owns the weights and must be closed last.

    Raises:
        ModelError: the model does not exist, its file is invalid, or it is a transformers model.
    """
    share = max(1, usable_cores() // count) if count > 1 else 0
    each = replace(options, threads=options.threads or share)
    first = open_model(name, each)
    return [first, *(LlamaCpp(first.model.path, each, first.model) for _ in range(count - 1))]


def open_copies(
    name: str, engine: Mapping[str, Value] = NOTHING, *, slots: int = 1, branches: int = 0, count: int = 1
) -> Sequence[Backend]:
    """Load a model by name or path: on a server, on transformers for ``hf:NAME`` or a folder, otherwise on llama.cpp.

    ``vllm:URL`` and ``sglang:URL`` are models on servers (`redraft.backends.remote.address`); their API key comes from
    the environment variable `KEY_VARIABLE`.

    Args:
        name: name or path of the model.
        engine: options of the engine (`redraft.backends.options`).
        slots: number of independent sequences of each backend.
        branches: maximum number of further branches of a draft tree, on llama.cpp.
        count: number of backends, 1 on transformers; on llama.cpp, they share weights and cores.

    Raises:
        ModelError: the model does not exist, its files are invalid, or its address is.
        MissingExtra: the backend needs an extra that is not installed.
        OptionError: an option of the engine is unknown, has an invalid value, or is not for this backend.
    """
    kind = _kind_of(name)
    if kind is LlamaOptions:
        return open_contexts(name, options_of(kind, engine, "GGUF models", slots=slots, branches=branches), count)
    if kind is HfOptions:
        return [open_transformers(name, options_of(kind, engine, "transformers models", slots=slots))]
    options, address = options_of(RemoteOptions, engine, "models on servers", slots=slots), Address.parse(name)
    # Tokenizers need no PyTorch, without which transformers advises to install it.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    with from_extra("remote", f"model {name!r} needs"):
        from redraft.backends.remote.backend import open_remote
    return open_remote(address, options, os.environ.get(KEY_VARIABLE, ""), count)


def open_backend(name: str, engine: Mapping[str, Value] = NOTHING, *, slots: int = 1, branches: int = 0) -> Backend:
    """Load a model once; as `open_copies`."""
    return open_copies(name, engine, slots=slots, branches=branches)[0]


def fitting(name: str, engine: Mapping[str, Value]) -> dict[str, Value]:
    """Return those options of the engine that the backend of a model has."""
    known = taken_by(_kind_of(name))
    return {each: value for each, value in engine.items() if each in known}


def _kind_of(name: str) -> type[LlamaOptions | HfOptions | RemoteOptions]:
    return HfOptions if on_transformers(name) else RemoteOptions if is_remote(name) else LlamaOptions


def open_transformers(name: str, options: HfOptions) -> HfDecoder | HfEncoderDecoder:
    """Load a transformers model by ``hf:NAME``, ``hf:FILE.gguf`` or its folder.

    Raises:
        ModelError: the model does not exist, or its files are invalid.
        MissingExtra: transformers is not installed.
        OptionError: the device does not exist.
    """
    place = name.removeprefix(HF_PREFIX)
    local = resolve(place) if place.lower().endswith(".gguf") else _folder(place)
    with from_extra("hf", f"model {name!r} needs"):
        from redraft.backends.hf.model import open_hf
    return open_hf(str(local or place), options)


def _path(name: str) -> Path:
    if "://" in name:
        raise ModelError(
            f"model {name!r} is an address: download the file, and give its path; models of Ollama and LM Studio need "
            "no server (ollama:NAME, lmstudio:NAME), and other servers are vllm:URL or sglang:URL"
        )
    return Path(os.path.expanduser(name))  # noqa: PTH111  # leaves unknown users as they are


def _folder(name: str) -> Path | None:
    path = _path(name)
    return path if name and os.path.isfile(path / "config.json") else None  # noqa: PTH113  # false for bad names


def open_models(
    methods: Sequence[Method],
    model: str,
    draft_model: str | None,
    engine: Mapping[str, Value],
    slots: int,
    stack: ExitStack,
    count: int = 1,
) -> list[dict[str, Backend]]:
    """Open the target model (`TARGET`) and, if one of the methods needs it, the draft model (`DRAFT_MODEL`).

    Args:
        methods: the methods for which they are used.
        model: name or path of the target model.
        draft_model: name or path of the draft model; None uses the one that ships for ``model``, if any.
        engine: options of the engine; those that the draft model's backend lacks are for the target only.
        slots: number of independent sequences of each backend, over all methods.
        stack: closes what is opened here.
        count: how many times; see `open_copies`.

    Raises:
        ModelError: a model does not exist, or its file is invalid.
        CapabilityError: a draft model is needed and none is known.
        OptionError: an option of the engine is unknown, has an invalid value, or is not for the target's backend.
    """
    small = SMALL_OF.get(model) if draft_model is None else draft_model
    wanted = [method.name for method in methods if method.small_model]
    if wanted and small is None:
        raise CapabilityError(
            f"method {wanted[0]!r} needs a small model with the vocabulary of {model!r}; name it with --draft-model"
        )
    if draft_model is not None and not wanted:
        raise CapabilityError(f"method {methods[0].name!r} drafts without a small model, so leave --draft-model out")
    branches = BRANCHES_OF_A_TREE * slots if any(Capability.TREES in method.needs for method in methods) else 0
    opened: dict[str, Sequence[Backend]] = {}

    def keep(name: str, copies: Sequence[Backend]) -> None:
        opened[name] = copies
        for each in copies:
            stack.callback(each.close)

    keep(TARGET, open_copies(model, engine, slots=slots, branches=branches, count=count))
    if wanted and small is not None:
        keep(DRAFT_MODEL, open_copies(small, fitting(small, engine), slots=slots, count=count))
    return [{name: copies[place] for name, copies in opened.items()} for place in range(count)]
