"""Options of the engine.

A backend takes those that are fields of its options: `LlamaOptions`, `HfOptions` or `RemoteOptions`, which need none of
its libraries.  Those of llama.cpp have the names of its own options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from redraft import deadlines
from redraft.decoding.method import Choice, Option, Value
from redraft.errors import OptionError, expect, nearest, whole

T = TypeVar("T")

#: No options: all have their defaults.
NOTHING: Mapping[str, Value] = MappingProxyType({})

#: Maximum number of sequences in llama.cpp's cache.
MOST_SEQUENCES = 256
#: Maximum size in bytes of a small model, which runs on one thread.
SMALL_MODEL = 64 << 20
#: Types of llama.cpp's cache.
_CACHES = ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")


@dataclass(frozen=True)
class Shares(Choice):
    """An option whose value is a list of numbers with commas between, or empty."""

    allowed = "numbers of 0 or more with commas between, such as 3,1"

    def check(self, value: object) -> Value:
        """Check a value and return it.

        Raises:
            OptionError: the value is not allowed.
        """
        if value != "" and not re.fullmatch(r"(?=.*[1-9])\d+(\.\d+)?(,\d+(\.\d+)?)*", str(value)):
            raise OptionError(f"must be {self.allowed}, not {value!r}", self.name)
        return str(value)


def _option(kind: type[Option | Choice], *facts: Any, **more: Any) -> Any:
    """Return the field of an option, which has the name of the field."""
    declared = kind("", *facts, **more)
    return field(default=declared.default, metadata={"option": declared})


def taken_by(kind: type) -> tuple[str, ...]:
    """Return the names of the options that the options of a backend have."""
    return tuple(each.name for each in fields(kind) if each.metadata)


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What all backends have; options are checked.

    Attributes:
        context_length: ids per slot; capped at what the model or its server can hold.
        slots: number of independent sequences, one for every stream and target language.

    Raises:
        OptionError: a value is invalid.
    """

    MOST_SLOTS: ClassVar[int] = 4096

    context_length: int = _option(Option, 2048, 16, 1 << 20, "context length for each language, in tokens", whole=True)
    slots: int = 1

    def __post_init__(self) -> None:
        for name in taken_by(type(self)):
            object.__setattr__(self, name, OPTIONS[name].check(getattr(self, name)))
        whole("slots", self.slots, 1, self.MOST_SLOTS)


_THREADS = 0, 0, 1024, "CPU threads; 0 adapts to the load"


@dataclass(frozen=True, slots=True)
class LlamaOptions(BackendOptions):
    """Options of models on llama.cpp.

    Attributes:
        branches: maximum number of further branches of a draft tree; 0 allows only chains. Trees need a shared cache,
            which is slower with many slots.
        threads: CPU threads; 0 for one per core that other processes leave free, and one for models up to
            `SMALL_MODEL`.
        exact: make batched and single passes bit-identical, on the CPU only; slower, especially with float weights,
            which run one id at a time, and with trees in several slots, which take turns.
        batch: maximum ids per call of the engine; longer requests are split.
    """

    MOST_SLOTS: ClassVar[int] = MOST_SEQUENCES

    branches: int = 0
    threads: int = _option(Option, *_THREADS, whole=True)
    exact: bool = _option(Option, 0, 0, 1, "1: make all passes bit-identical, on the CPU only; slower", whole=True)
    batch: int = _option(Option, 2048, 1, 1 << 16, "most tokens of a pass", whole=True)
    gpu_layers: int = _option(Option, -1, -1, 10_000, "layers on the GPU; -1: all that fit", whole=True)
    split_mode: str = _option(Choice, "layer", ("none", "layer", "row"), "how several GPUs share a model")
    main_gpu: int = _option(Option, 0, 0, 255, "number of the GPU that a model without a split is on", whole=True)
    tensor_split: str = _option(Shares, "", (), "share of each GPU in the model")
    flash_attn: str = _option(Choice, "auto", ("auto", "on", "off"), "flash attention")
    cache_type_k: str = _option(Choice, "f16", _CACHES, "type of the keys in the cache")
    cache_type_v: str = _option(
        Choice, "f16", _CACHES, "type of the values in the cache; a quantised one needs flash_attn"
    )
    kv_offload: bool = _option(Option, 1, 0, 1, "0: keep the cache in main memory", whole=True)
    load_mode: str = _option(
        Choice, "auto", ("auto", "none", "mmap", "mlock", "mmap_mlock", "direct_io"), "how the file is read"
    )

    def __post_init__(self) -> None:
        BackendOptions.__post_init__(self)
        whole("branches", self.branches, 0, MOST_SEQUENCES - 1)
        if self.exact:
            for name in self.changed("flash_attn", "cache_type_k", "cache_type_v"):
                raise OptionError(f"{name} cannot be set, since exact passes need their own: leave it out", "engine")
        if self.slots + self.branches > MOST_SEQUENCES:
            raise OptionError(f"slots and branches together must be at most {MOST_SEQUENCES}")

    def changed(self, *names: str) -> list[str]:
        """Return those of some options that have another value than their default."""
        return [name for name in names if getattr(self, name) != OPTIONS[name].default]


@dataclass(frozen=True, slots=True)
class HfOptions(BackendOptions):
    """Options of models on transformers.

    Attributes:
        threads: CPU threads of the whole process; 0 keeps the current number.
        static: 1 pads short passes of decoder-only models to a few fixed shapes, and replays them as CUDA graphs on a
            GPU.
    """

    dtype: str = _option(Choice, "float32", ("float32", "bfloat16"), "data type of weights and cache")
    device: str = _option(
        Choice, "auto", ("auto", "cpu", "cuda"), "where the model runs; auto: on a GPU if there is one"
    )
    threads: int = _option(Option, *_THREADS, whole=True)
    static: int = _option(Option, 0, 0, 1, "1: short passes in fixed shapes, on a GPU as CUDA graphs", whole=True)


@dataclass(frozen=True, slots=True)
class RemoteOptions(BackendOptions):
    """Options of models on servers, with a concurrent request for each slot.

    Attributes:
        ahead: tokens requested at a time where nothing is drafted; 1 requests each token separately.
        plugin: whether the server verifies drafts itself if it can (`docs/remote.md`).
    """

    ahead: int = _option(Option, 64, 1, 1024, "tokens requested at a time where nothing is drafted", whole=True)
    timeout: float = _option(
        Option, 60, 0.001, deadlines.FIRST_PASS, "seconds to wait for an answer, or for the next token of one"
    )
    plugin: bool = _option(Option, 1, 0, 1, "0: let the server verify no drafts itself", whole=True)


#: Name -> option, of all backends.
OPTIONS: dict[str, Option | Choice] = {
    each.name: replace(each.metadata["option"], name=each.name)
    for kind in (LlamaOptions, HfOptions, RemoteOptions)
    for each in fields(kind)
    if each.metadata
}
#: Defaults for GGUF files.
LLAMA = LlamaOptions()


def checked(given: Mapping[str, Value]) -> dict[str, Value]:
    """Check options of the engine.

    Raises:
        OptionError: one is unknown or has an invalid value.
    """
    expect(given, Mapping, "engine", "{'threads': 2}")
    for name in given:
        if name not in OPTIONS:
            near = nearest(str(name), OPTIONS)
            raise OptionError(f"has no option {name!r}{near}; its options: {', '.join(OPTIONS)}", "engine")
    return {name: OPTIONS[name].check(value) for name, value in given.items()}


def options_of(kind: type[T], given: Mapping[str, Value], what: str, **more: Any) -> T:
    """Return the options of a backend.

    Args:
        kind: their type.
        given: options of the engine.
        what: what the backend runs, for the message.
        more: fields that are not in the table.

    Raises:
        OptionError: one is unknown, has an invalid value, or is not for this backend.
    """
    values, known = checked(given), taken_by(kind)
    for name in values:
        if name not in known:
            raise OptionError(f"{name} is not for {what}, so leave it out; its options: {', '.join(known)}", "engine")
    return kind(**values, **more)
