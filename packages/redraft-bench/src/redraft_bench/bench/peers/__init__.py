"""Runs the same model and text through alternatives to Redraft: other libraries and other output policies.

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
from typing import TypeVar

from redraft import __version__
from redraft.backends.options import HfOptions, LlamaOptions, taken_by
from redraft.decoding.method import Value
from redraft.errors import CapabilityError, MissingExtra, install
from redraft_bench.bench.peers.align_att import AlignAtt
from redraft_bench.bench.peers.llama_cpp_python import LlamaCppPython
from redraft_bench.bench.peers.llama_server import LlamaServer, server_version
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.nemo import Nemo
from redraft_bench.bench.peers.retranslate import Retranslation, Task
from redraft_bench.bench.peers.transformers_generate import LOOKUP, Transformers
from redraft_bench.eval.measure import System

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Models:
    """Models for a peer.

    Attributes:
        path: GGUF file, or folder for transformers.
        small: the same for the draft model.
        engine: options of the engine (`redraft.backends.options`), of which libraries take what they have.
    """

    path: Path
    small: Path | None
    engine: Mapping[str, Value]

    def options(self, kind: type[T]) -> T:
        """Return the options for a library."""
        return kind(**{name: value for name, value in self.engine.items() if name in taken_by(kind)})


@dataclass(frozen=True, slots=True)
class Peer:
    """An alternative to Redraft.

    Attributes:
        open: makes the system from a task, the models, and options by name.
        packages: the libraries, or the program, that it uses; empty if it runs on Redraft itself.
        drafts: whether it needs a draft model.
    """

    open: Callable[..., System]
    packages: tuple[str, ...] = ()
    drafts: bool = False


def _llama(task: Task, models: Models, *, lookup: bool) -> System:
    return Retranslation(
        task, LlamaCppPython(models.path, models.options(LlamaOptions), task.backend.end_tokens, lookup=lookup)
    )


def _server(task: Task, models: Models, ngram: int = 0) -> System:
    return Retranslation(task, LlamaServer(models.path, models.options(LlamaOptions), task.backend.end_tokens, ngram))


def _transformers(
    task: Task, models: Models, *, small: bool = False, more: Mapping[str, Value] | None = None
) -> System:
    assistant = models.small if small else None
    ends = task.backend.end_tokens
    return Retranslation(task, Transformers(models.path, models.options(HfOptions), ends, small=assistant, more=more))


SERVER, _LLAMA, _HF = "llama-server", ("llama-cpp-python",), ("transformers", "torch")

#: All peers by name: libraries, with a prefix cache, prompt lookup or an assistant; and policies.
PEERS: Mapping[str, Peer] = {
    "llama-cpp-python": Peer(partial(_llama, lookup=False), _LLAMA),
    "llama-cpp-python-lookup": Peer(partial(_llama, lookup=True), _LLAMA),
    SERVER: Peer(_server, (SERVER,)),
    "transformers": Peer(_transformers, _HF),
    "transformers-lookup": Peer(partial(_transformers, more=LOOKUP), _HF),
    "transformers-assistant": Peer(partial(_transformers, small=True), _HF, drafts=True),
    "local-agreement": Peer(lambda task, _models, n=2: LocalAgreement(task, n)),
    "nemo": Peer(lambda task, _models, waitk=0: Nemo(task, waitk)),
    "align-att": Peer(
        lambda task, models, frames=4: AlignAtt(task, models.path, models.options(HfOptions), frames), _HF
    ),
}


def open_peer(name: str, task: Task, models: Models, options: Mapping[str, Value]) -> System:
    """Load a copy of the model into a peer's library; call `close` to free it.

    Args:
        name: one of `PEERS`.
        task: the prompts, made by the same model on Redraft; policies without a library decode in one of its slots.
        models: the models; the draft model is ignored by peers that need none.
        options: the peer's options.

    Raises:
        OptionError: a value is invalid.
        ModelError: a model is missing or broken, or the library does not support it.
        CapabilityError: the peer needs a draft model and none is given, or the backend has no free slot.
        MissingExtra: the library is not installed.
    """
    peer = PEERS[name]
    if peer.drafts and models.small is None:
        raise CapabilityError(f"peer {name!r} drafts with a small model, so one of the same vocabulary is needed")
    with _installed(name):
        return peer.open(task, models, **options)


def version(name: str) -> str:
    """Return a peer's libraries with their versions, such as ``transformers 5.0.0, torch 2.9.0``.

    Raises:
        MissingExtra: a library is not installed.
        CapabilityError: a program is not there.
    """
    packages = PEERS[name].packages
    with _installed(name):
        versions = (server_version() if each == SERVER else f"{each} {metadata.version(each)}" for each in packages)
        return ", ".join(versions) or f"redraft {__version__}"


@contextmanager
def _installed(name: str) -> Iterator[None]:
    """Name the missing extra if an import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if PEERS[name].packages != _HF:
            raise
        library = str(error.name).partition(".")[0]
        raise MissingExtra(f"peer {name!r} needs {library}, which is not installed: {install('hf,gguf')}") from error
