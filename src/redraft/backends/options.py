"""Options of the engine: one table for all backends.

A backend takes those that are fields of its options: `LlamaOptions`, `HfOptions` or `RemoteOptions`, which need none of
its libraries.  Those of llama.cpp have the names of its own options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
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


#: Name -> option.
OPTIONS: dict[str, Option | Choice] = {
    each.name: each
    for each in (
        Option("context_length", 2048, 16, 1 << 20, "context length for each language, in tokens", whole=True),
        Option("threads", 0, 0, 1024, "CPU threads; 0 adapts to the load", whole=True),
        Option("exact", 0, 0, 1, "1: make all passes bit-identical, on the CPU only; slower", whole=True),
        Option("batch", 2048, 1, 1 << 16, "most tokens of a pass", whole=True),
        Option("gpu_layers", -1, -1, 10_000, "layers on the GPU; -1: all that fit", whole=True),
        Choice("split_mode", "layer", ("none", "layer", "row"), "how several GPUs share a model"),
        Option("main_gpu", 0, 0, 255, "number of the GPU that a model without a split is on", whole=True),
        Shares("tensor_split", "", (), "share of each GPU in the model"),
        Choice("flash_attn", "auto", ("auto", "on", "off"), "flash attention"),
        Choice("cache_type_k", "f16", _CACHES, "type of the keys in the cache"),
        Choice("cache_type_v", "f16", _CACHES, "type of the values in the cache; a quantised one needs flash_attn"),
        Option("kv_offload", 1, 0, 1, "0: keep the cache in main memory", whole=True),
        Choice(
            "load_mode", "auto", ("auto", "none", "mmap", "mlock", "mmap_mlock", "direct_io"), "how the file is read"
        ),
        Choice("dtype", "float32", ("float32", "bfloat16"), "data type of weights and cache"),
        Choice("device", "auto", ("auto", "cpu", "cuda"), "where the model runs; auto: on a GPU if there is one"),
        Option("static", 0, 0, 1, "1: short passes in fixed shapes, on a GPU as CUDA graphs", whole=True),
        Option("ahead", 64, 1, 1024, "tokens requested at a time where nothing is drafted", whole=True),
        Option(
            "timeout", 60, 0.001, deadlines.FIRST_PASS, "seconds to wait for an answer, or for the next token of one"
        ),
        Option("plugin", 1, 0, 1, "0: let the server verify no drafts itself", whole=True),
    )
}


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


def taken_by(kind: type) -> tuple[str, ...]:
    """Return the names of the options that a type of options has."""
    return tuple(each.name for each in fields(kind) if each.name in OPTIONS)


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


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What all backends have; those of their options that are in the table are checked.

    Attributes:
        context_length: ids per slot; capped at what the model or its server can hold.
        slots: number of independent sequences, one for every stream and target language.

    Raises:
        OptionError: a value is invalid.
    """

    MOST_SLOTS: ClassVar[int] = 4096

    context_length: int = 2048
    slots: int = 1

    def __post_init__(self) -> None:
        for name in taken_by(type(self)):
            object.__setattr__(self, name, OPTIONS[name].check(getattr(self, name)))
        whole("slots", self.slots, 1, self.MOST_SLOTS)


@dataclass(frozen=True, slots=True)
class HfOptions(BackendOptions):
    """Options of models on transformers.

    Attributes:
        dtype: ``float32`` or ``bfloat16``, for weights and cache.
        device: ``cpu``, ``cuda``, or ``auto`` for a GPU if there is one.
        threads: CPU threads of the whole process; 0 keeps the current number.
        static: 1 pads short passes of decoder-only models to a few fixed shapes, and replays them as CUDA graphs on a
            GPU.
    """

    dtype: str = "float32"
    device: str = "auto"
    threads: int = 0
    static: int = 0


@dataclass(frozen=True, slots=True)
class RemoteOptions(BackendOptions):
    """Options of models on servers, with a concurrent request for each slot.

    Attributes:
        ahead: tokens requested at a time where nothing is drafted; 1 requests each token separately.
        timeout: seconds to wait for an answer, or for the next token of one.
        plugin: whether the server verifies drafts itself if it can (`docs/remote.md`).
    """

    ahead: int = 64
    timeout: float = 60.0
    plugin: bool = True


@dataclass(frozen=True, slots=True)
class LlamaOptions(BackendOptions):
    """Options of models on llama.cpp.

    Attributes:
        branches: maximum number of further branches of a draft tree; 0 allows only chains. Trees need a shared cache,
            which is slower with many slots.
        threads: CPU threads; 0 for one per core that other processes leave free, and one for models up to
            `SMALL_MODEL`.
        gpu_layers: layers on the GPU; -1 for all that fit.
        split_mode: how several GPUs share the model: ``none``, ``layer`` or ``row``.
        main_gpu: number of the GPU that a model without a split is on.
        tensor_split: share of each GPU in the model, with commas between; empty for what fits.
        flash_attn: ``auto``, ``on`` or ``off``.
        cache_type_k: type of the keys in the cache, such as ``q8_0``.
        cache_type_v: type of the values; a quantised one needs ``flash_attn``.
        kv_offload: whether the cache is on the GPU.
        load_mode: how the file is read, such as ``mmap``; ``auto`` leaves it to llama.cpp.
        batch: maximum ids per call of the engine; longer requests are split.
        exact: make batched and single passes bit-identical, on the CPU only; slower, especially with float weights,
            which run one id at a time, and with trees in several slots, which take turns.
    """

    MOST_SLOTS: ClassVar[int] = MOST_SEQUENCES

    branches: int = 0
    threads: int = 0
    gpu_layers: int = -1
    batch: int = 2048
    exact: bool = False
    split_mode: str = "layer"
    main_gpu: int = 0
    tensor_split: str = ""
    flash_attn: str = "auto"
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    kv_offload: bool = True
    load_mode: str = "auto"

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


#: Defaults for GGUF files.
LLAMA = LlamaOptions()
