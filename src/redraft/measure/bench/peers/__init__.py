"""The same model and text through what a user would pick instead of Redraft: other libraries, and another policy.

Every peer gets the prompts, the limits and the text handling of Redraft's own methods, decodes greedily, and translates
every update from scratch.  What differs is what its library does with a prompt, and what it keeps from the last one.
Libraries run by their own defaults; Redraft's choices for its backend, such as ``exact``, are not theirs.
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
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.method import Option, Value
from redraft.errors import CapabilityError, MissingExtra, OptionError
from redraft.measure.bench.peers.llama_cpp_python import LlamaCppPython
from redraft.measure.bench.peers.local_agreement import AGREEMENT, LocalAgreement
from redraft.measure.bench.peers.retranslate import Retranslation, Task
from redraft.measure.bench.peers.transformers_generate import LOOKUP, Transformers
from redraft.measure.eval.measure import System

_MAX_TOKENS = Option("max_tokens", 256, 1, 1 << 20, "the most tokens of one translation", whole=True)


@dataclass(frozen=True, slots=True)
class Models:
    """What a peer loads.

    Attributes:
        path: the model's file, or its folder for transformers.
        small: that of the small model.
        options: context length, threads and GPU layers.
    """

    path: Path
    small: Path | None
    options: LlamaOptions

    @property
    def for_transformers(self) -> HfOptions:
        """The same options."""
        device = "auto" if self.options.gpu_layers else "cpu"
        return HfOptions(self.options.context_length, device=device, threads=self.options.threads)


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to translate that is not Redraft's.

    Attributes:
        name: what tables call it.
        summary: one line.
        needs: names of the extras to install, with commas between them; empty if there is none.
        open: makes the system from a task, the models, and the values of its options by name.
        packages: the libraries at work; none where that is Redraft itself.
        options: its options.
        drafts: whether it needs a small model.
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


def get_peer(name: str) -> Peer:
    """The peer called ``name``.

    Raises:
        OptionError: there is none.
    """
    if name not in PEERS:
        raise OptionError(f"peer {name!r} is not known; known peers: {', '.join(PEERS)}")
    return PEERS[name]


def open_peer(
    name: str,
    model: Path,
    language: str,
    *,
    small: Path | None,
    threads: int,
    context_length: int,
    max_tokens: int,
    backend: Backend,
    gpu_layers: int = -1,
    style: Style = Style(),
    options: Mapping[str, Value] | None = None,
) -> System:
    """Load a copy of the model into a peer's library; `close` frees it.

    Args:
        model: the GGUF file; for transformers a folder of its own too.
        language: BCP 47 tag of the target language.
        small: the small model of the peers that need one; the others leave it.
        threads: CPU threads; 0 takes all cores.
        context_length: the most ids of prompt and output.
        max_tokens: the most tokens of one translation.
        backend: the same model on Redraft, whose tokenizer makes all prompts; LocalAgreement decodes in a slot of it.
        gpu_layers: layers on the GPU; -1 all that fit, 0 none.
        style: how prompts are made.
        options: of the peer.

    Raises:
        OptionError: a name, a language or a value is not allowed.
        ModelError: a model is missing, broken, or not one that the library runs.
        CapabilityError: the peer needs a small model and none is given, or the backend has no free slot.
        MissingExtra: the library is not installed.
    """
    peer = get_peer(name)
    if peer.drafts and small is None:
        raise CapabilityError(f"peer {name!r} drafts with a small model, so one of the same vocabulary is needed")
    known = {option.name: option for option in peer.options}
    for given in options or {}:
        if given not in known:
            raise OptionError(f"peer {name!r} has no option {given!r}; its options: {', '.join(known) or 'none'}")
    values = {option.name: option.check((options or {}).get(option.name, option.default)) for option in peer.options}
    engine = LlamaOptions(context_length=context_length, threads=threads, gpu_layers=gpu_layers)
    task = Task(backend, language, style, int(_MAX_TOKENS.check(max_tokens)), context_length)
    with _installed(peer):
        return peer.open(task, Models(model, small, engine), **values)


def version(name: str) -> str:
    """The libraries of a peer with their versions, such as ``transformers 5.0.0, torch 2.9.0``.

    Raises:
        OptionError: there is no such peer.
        MissingExtra: its library is not installed.
    """
    peer = get_peer(name)
    with _installed(peer):
        return ", ".join(f"{each} {metadata.version(each)}" for each in peer.packages) or f"redraft {__version__}"


@contextmanager
def _installed(peer: Peer) -> Iterator[None]:
    """Say which extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not peer.needs:
            raise
        library = str(error.name).partition(".")[0]
        raise MissingExtra(
            f"peer {peer.name!r} needs {library}, which is not installed: pip install 'redraft[{peer.needs}]'"
        ) from error
