"""Open backends by the name of a model, as given to ``--model``."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.backends.hf.options import DTYPES, HfOptions
from redraft.backends.llama_model import on_gpu, usable_cores
from redraft.backends.llamacpp import SMALL_MODEL, LlamaCpp, LlamaOptions
from redraft.backends.remote.address import KEY_VARIABLE, Address, RemoteOptions, is_remote
from redraft.decoding.backend import Backend
from redraft.decoding.method import Method
from redraft.errors import CapabilityError, MissingExtra, ModelError, OptionError
from redraft.models import SHIPPED, SMALL_OF, shipped_path
from redraft.models.hub import cached_path

if TYPE_CHECKING:
    from redraft.backends.hf.decoder_only import HfDecoder
    from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
    from redraft.backends.remote.backend import RemoteBackend

#: Before the name of a model of transformers, on the hub or in a folder.
HF_PREFIX = "hf:"
_MODELS_OF_LLAMA_CPP = f"{', '.join(SHIPPED)}, a name that `redraft models` lists, or the path of a GGUF file"
#: The most requests at a time that a server is tried with, and so the most engines that wait for it, unless more are
#: asked for.
MOST_CONNECTIONS = 32
#: Further branches that the draft tree of one slot may have.
BRANCHES_OF_A_TREE = 15


def resolve(name: str) -> Path:
    """The file of a model: one that ships, a downloaded one, or a path.

    Raises:
        ModelError: unknown name, or a listed model that has not been downloaded yet.
    """
    if name in SHIPPED:
        return shipped_path(name)
    if is_remote(name):
        raise ModelError(f"model {name!r} is on a server, but a file is needed: use {_MODELS_OF_LLAMA_CPP}")
    fetched = cached_path(name)
    if fetched is not None:
        return fetched
    try:
        path = _path(name)
        unknown = not name or (not path.exists() and path.suffix.lower() != ".gguf")
    except (OSError, RuntimeError) as error:
        raise ModelError(f"model {name!r} cannot be a file: {error}") from error
    if unknown:
        raise ModelError(f"model {name!r} is neither a name nor a file: use {_MODELS_OF_LLAMA_CPP}")
    return path


def on_transformers(name: str) -> bool:
    """Whether a name is a transformers model: ``hf:NAME``, or a folder with a configuration."""
    return name.startswith(HF_PREFIX) or (not is_remote(name) and _folder(name) is not None)


def open_model(name: str, options: LlamaOptions = LlamaOptions()) -> LlamaCpp:
    """Load a model by name or path on llama.cpp.

    Raises:
        ModelError: there is no such model, its file is unfit, or it is one of transformers.
    """
    if on_transformers(name):
        raise ModelError(
            f"model {name!r} is one of transformers, but one of llama.cpp is needed: {_MODELS_OF_LLAMA_CPP}"
        )
    return LlamaCpp(resolve(name), options)


def usual_contexts(name: str, gpu_layers: int) -> int:
    """How many contexts of a model are fastest for many slots: one a core if it is small and on the CPU, else one.

    The contexts of a large one would each read all weights from memory.  A server batches by itself what comes in at
    the same time: it is asked how many requests it batches well, which takes seconds.

    Raises:
        ModelError: there is no such model, or the server does not answer.
        MissingExtra: the extra for servers is not installed.
    """
    if is_remote(name):
        (tried,) = open_on_server(name, LlamaOptions(slots=MOST_CONNECTIONS))
        with closing(tried):
            return tried.batched()
    path = resolve(name)
    small = path.is_file() and path.stat().st_size <= SMALL_MODEL
    return usable_cores() if small and not on_gpu(gpu_layers) else 1


def open_contexts(name: str, options: LlamaOptions, count: int) -> list[LlamaCpp]:
    """Load a model by name or path on llama.cpp, in several contexts that share its weights and the cores.

    Args:
        options: those of each; without ``threads`` each of several takes its share of the cores.
        count: contexts, 1 or more; the first owns the weights and must be closed last.

    Raises:
        ModelError: there is no such model, its file is unfit, or it is one of transformers.
    """
    share = max(1, usable_cores() // count) if count > 1 else 0
    each = replace(options, threads=options.threads or share)
    first = open_model(name, each)
    return [first, *(LlamaCpp(first.model.path, each, first.model) for _ in range(count - 1))]


def open_backend(name: str, options: LlamaOptions = LlamaOptions(), dtype: str | None = None) -> Backend:
    """Load a model by name or path: on a server, on transformers for ``hf:NAME`` or a folder, otherwise on llama.cpp.

    ``vllm:URL`` and ``sglang:URL`` are models on servers.  Servers and transformers use the options that they know;
    with 0 GPU layers transformers runs on the CPU.

    Args:
        dtype: what a model of transformers computes in, one of `DTYPES`; None takes the first.

    Raises:
        ModelError: there is no such model, or its files are unfit.
        MissingExtra: the backend needs an extra that is not installed.
        OptionError: ``dtype`` is not allowed, or given for a GGUF file or for a model on a server.
    """
    if is_remote(name):
        if dtype is not None:
            raise OptionError(
                f"dtype is for models of transformers; the server decides that of {name!r}, so leave it out"
            )
        return open_on_server(name, options)[0]
    if not on_transformers(name):
        if dtype is not None:
            raise OptionError(f"dtype is for models of transformers; that of {name!r} is in its file, so leave it out")
        return open_model(name, options)
    device = "auto" if options.gpu_layers else "cpu"
    known = HfOptions(options.context_length, options.slots, dtype or DTYPES[0], device, options.threads)
    return open_transformers(name, known)


def open_on_server(name: str, options: LlamaOptions, count: int = 1) -> list[RemoteBackend]:
    """Connect to a model on a server ``count`` times, by its address (`redraft.backends.remote.address`).

    The API key comes from the environment variable `KEY_VARIABLE`.

    Raises:
        ModelError: the address is invalid, the server cannot be reached, or it does not serve the model.
        MissingExtra: the extra is not installed.
    """
    address = Address.parse(name)
    try:
        from redraft.backends.remote.open import open_remote
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"model {name!r} needs {error.name}, which is not installed: pip install 'redraft[remote]'"
        ) from error
    known = RemoteOptions(options.context_length, options.slots)
    return open_remote(address, known, os.environ.get(KEY_VARIABLE, ""), count)


def open_transformers(name: str, options: HfOptions) -> HfDecoder | HfEncoderDecoder:
    """Load a model of transformers by ``hf:NAME`` or its folder.

    Raises:
        ModelError: there is no such model, or its files are unfit.
        MissingExtra: transformers is not installed.
        OptionError: there is no such device.
    """
    if name == HF_PREFIX:
        raise ModelError(f"model {name!r} has no name: use {HF_PREFIX}NAME of the hub, or the folder of a model")
    folder = _folder(name.removeprefix(HF_PREFIX))
    try:
        from redraft.backends.hf.model import open_hf
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"model {name!r} needs {error.name}, which is not installed: pip install 'redraft[hf]'"
        ) from error
    return open_hf(str(folder or name.removeprefix(HF_PREFIX)), options)


def _path(name: str) -> Path:
    if "://" in name:
        raise ModelError(f"model {name!r} is an address: download the file, and give its path")
    return Path(name).expanduser()


def _folder(name: str) -> Path | None:
    """The folder of a model of transformers, if the name is that of one."""
    try:
        path = _path(name)
        return path if name and (path / "config.json").is_file() else None
    except (OSError, RuntimeError):  # no name of a file
        return None


def open_models(
    method: Method, model: str, draft_model: str | None, options: LlamaOptions, dtype: str | None = None
) -> list[Backend]:
    """The target and, for a method that drafts with a small model, that one.

    Args:
        draft_model: None takes the small model that ships beside ``model``, if there is one.
        dtype: of the target; of the small model too, if that is one of transformers.

    Raises:
        ModelError: there is no such model, or its file is unfit.
        CapabilityError: a small model is needed and none is known.
        OptionError: ``dtype`` is not allowed, or given for a GGUF file.
    """
    small = SMALL_OF.get(model) if draft_model is None else draft_model
    wanted = method.draft_model == "small"
    if wanted and small is None:
        raise CapabilityError(
            f"method {method.name!r} needs a small model of the vocabulary of {model!r}; name it with --draft-model"
        )
    if draft_model is not None and not wanted:
        raise CapabilityError(f"method {method.name!r} drafts without a small model, so leave --draft-model out")
    # On a CPU, passes over wide trees cost too much, and a cache that allows them slows many slots down.
    trees = "trees" in method.needs or ("trees" in method.uses and on_gpu(options.gpu_layers))
    branches = max(options.branches, BRANCHES_OF_A_TREE * options.slots) if trees else options.branches
    opened = [open_backend(model, replace(options, branches=branches), dtype)]
    if wanted and small is not None:
        try:
            small_dtype = dtype if on_transformers(small) else None
            opened.append(open_backend(small, replace(options, branches=0), small_dtype))
        except BaseException:
            opened[0].close()
            raise
    return opened
