"""Runs the same model and text through alternatives to Redraft: other libraries and another output policy.

Every peer gets the same prompts, limits and text handling as Redraft's methods, decodes greedily, and translates each
update from scratch.  Peers differ in how their library processes a prompt and in what they cache between calls.
Libraries run with their default settings; settings of Redraft's backend such as ``exact`` do not apply to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from redraft import __version__
from redraft.backends.hf.options import HfOptions
from redraft.backends.llamacpp import LlamaOptions
from redraft.decoding.method import Option, Value
from redraft.errors import CapabilityError, MissingExtra, install
from redraft_bench.bench.peers.llama_cpp_python import LlamaCppPython
from redraft_bench.bench.peers.local_agreement import AGREEMENT, LocalAgreement
from redraft_bench.bench.peers.retranslate import Retranslation, Task
from redraft_bench.bench.peers.transformers_generate import LOOKUP, Transformers
from redraft_bench.eval.measure import System


@dataclass(frozen=True, slots=True)
class Models:
    """Models for a peer.

    Attributes:
        path: GGUF file, or folder for transformers.
        small: the same for the draft model.
        options: context length, threads and GPU layers.
    """

    path: Path
    small: Path | None
    options: LlamaOptions

    @property
    def for_transformers(self) -> HfOptions:
        """Return the options for transformers."""
        device = "auto" if self.options.gpu_layers else "cpu"
        return HfOptions(self.options.context_length, device=device, threads=self.options.threads)


@dataclass(frozen=True, slots=True)
class Peer:
    """An alternative to Redraft.

    Attributes:
        name: its name in tables.
        summary: one-line description.
        needs: extras to install, separated by commas; empty if there are none.
        open: makes the system from a task, the models, and option values by name.
        packages: the libraries that it uses; empty if it runs on Redraft itself.
        options: its options.
        drafts: whether it needs a draft model.
    """

    name: str
    summary: str
    needs: str
    open: Callable[..., System]
    packages: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    drafts: bool = False


def _llama(task: Task, models: Models, *, lookup: bool) -> System:
    return Retranslation(task, LlamaCppPython(models.path, models.options, task.backend.end_tokens, lookup=lookup))


def _transformers(
    task: Task, models: Models, *, small: bool = False, more: Mapping[str, Value] | None = None
) -> System:
    assistant = models.small if small else None
    ends = task.backend.end_tokens
    return Retranslation(task, Transformers(models.path, models.for_transformers, ends, small=assistant, more=more))


_LLAMA, _HF = ("llama-cpp-python",), ("transformers", "torch")

#: All peers by name.
PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "llama-cpp-python",
            "Llama.generate, with its own prefix cache",
            "",
            partial(_llama, lookup=False),
            _LLAMA,
        ),
        Peer(
            "llama-cpp-python-lookup",
            "Llama.generate with LlamaPromptLookupDecoding",
            "",
            partial(_llama, lookup=True),
            _LLAMA,
        ),
        Peer("transformers", "generate, greedy", "hf,gguf", _transformers, _HF),
        Peer(
            "transformers-lookup",
            "generate with prompt_lookup_num_tokens=10",
            "hf,gguf",
            partial(_transformers, more=LOOKUP),
            _HF,
        ),
        Peer(
            "transformers-assistant",
            "generate with the small model as assistant_model",
            "hf,gguf",
            partial(_transformers, small=True),
            _HF,
            drafts=True,
        ),
        Peer(
            "local-agreement",
            "LocalAgreement with forced prefix, on Redraft's backend",
            "",
            lambda task, _models, n: LocalAgreement(task, int(n)),
            options=(AGREEMENT,),
        ),
    )
}


def open_peer(name: str, task: Task, models: Models, options: Mapping[str, Value]) -> System:
    """Load a copy of the model into a peer's library; call `close` to free it.

    Args:
        name: one of `PEERS`.
        task: the prompts, made by the same model on Redraft; LocalAgreement decodes in one of its slots.
        models: the models; the draft model is ignored by peers that need none.
        options: values of the peer's options.

    Raises:
        OptionError: a value is invalid.
        ModelError: a model is missing or broken, or the library does not support it.
        CapabilityError: the peer needs a draft model and none is given, or the backend has no free slot.
        MissingExtra: the library is not installed.
    """
    peer = PEERS[name]
    if peer.drafts and models.small is None:
        raise CapabilityError(f"peer {name!r} drafts with a small model, so one of the same vocabulary is needed")
    values = {option.name: option.check(options.get(option.name, option.default)) for option in peer.options}
    with _installed(peer):
        return peer.open(task, models, **values)


def version(name: str) -> str:
    """Return a peer's libraries with their versions, such as ``transformers 5.0.0, torch 2.9.0``.

    Raises:
        MissingExtra: a library is not installed.
    """
    peer = PEERS[name]
    with _installed(peer):
        return ", ".join(f"{each} {metadata.version(each)}" for each in peer.packages) or f"redraft {__version__}"


@contextmanager
def _installed(peer: Peer) -> Iterator[None]:
    """Name the missing extra if an import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not peer.needs:
            raise
        library = str(error.name).partition(".")[0]
        raise MissingExtra(
            f"peer {peer.name!r} needs {library}, which is not installed: {install(peer.needs)}"
        ) from error
