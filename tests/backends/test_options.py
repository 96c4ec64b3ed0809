"""Options of the engine: one table for all backends, and what llama.cpp gets of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from typing import Any

import pytest

from redraft.backends import llamacpp
from redraft.backends.engine import lib
from redraft.backends.llama_model import has_gpus
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import OPTIONS, HfOptions, LlamaOptions, RemoteOptions, checked, options_of, taken_by
from redraft.decoding.method import Choice, Option, Value
from redraft.errors import CapabilityError, ModelError, OptionError
from redraft.models import shipped_path

KINDS = (LlamaOptions, HfOptions, RemoteOptions)
#: Options of llama.cpp with what its parameters become.
PASSED: list[tuple[dict[str, Value], dict[str, int]]] = [
    ({}, {"flash_attn_type": lib.LLAMA_FLASH_ATTN_TYPE_AUTO, "type_k": 1, "type_v": 1, "offload_kqv": 1}),
    ({"flash_attn": "on"}, {"flash_attn_type": lib.LLAMA_FLASH_ATTN_TYPE_ENABLED}),
    ({"flash_attn": "off"}, {"flash_attn_type": lib.LLAMA_FLASH_ATTN_TYPE_DISABLED}),
    ({"cache_type_k": "q8_0"}, {"type_k": lib.GGML_TYPE_Q8_0, "type_v": lib.GGML_TYPE_F16}),
    ({"cache_type_v": "q4_0"}, {"type_k": lib.GGML_TYPE_F16, "type_v": lib.GGML_TYPE_Q4_0}),
    ({"load_mode": "none"}, {"load_mode": lib.LLAMA_LOAD_MODE_NONE}),
    ({"gpu_layers": 3, "main_gpu": 1, "split_mode": "row"}, {"n_gpu_layers": 3, "main_gpu": 1, "split_mode": 2}),
    ({"kv_offload": 0}, {"offload_kqv": 0}),
]


def test_every_option_has_a_backend_and_its_default() -> None:
    assert {name for kind in KINDS for name in taken_by(kind)} == {*OPTIONS}
    for kind in KINDS:
        for each in fields(kind):
            assert each.name not in OPTIONS or OPTIONS[each.name].default == each.default


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.name)
def test_values(option: Any) -> None:
    name = option.name
    good = (option.low, option.high) if isinstance(option, Option) else getattr(option, "words", ("", "3,1", "0,2.5"))
    for value in (option.default, *good):
        assert checked({name: value}) == {name: value}
    for value in (None, [], "wonder", float("nan"), "-1", -(10**9)):
        with pytest.raises(OptionError, match=f"^{name} must be "):
            checked({name: value})  # type: ignore[dict-item]


def test_names() -> None:
    with pytest.raises(OptionError, match="^engine has no option 'n_threads'; the nearest is threads; its options: "):
        checked({"n_threads": 1})
    for kind in KINDS:
        for name, option in OPTIONS.items():
            if name in taken_by(kind):
                assert getattr(options_of(kind, {name: option.default}, "x"), name) == option.default
            else:
                with pytest.raises(OptionError, match=f"^engine {name} is not for these, so leave it out"):
                    options_of(kind, {name: option.default}, "these")


@pytest.mark.parametrize(("given", "wanted"), PASSED, ids=lambda value: str(value))
def test_what_llama_cpp_gets(monkeypatch: pytest.MonkeyPatch, given: dict[str, Value], wanted: dict[str, int]) -> None:
    seen: dict[str, Any] = {}

    def keep(name: str, place: int) -> None:
        function = getattr(lib, name)

        def spy(*arguments: Any) -> Any:
            params = arguments[place]
            seen.update({field: getattr(params, field) for field, *_ in params._fields_})
            return function(*arguments)

        monkeypatch.setattr(lib, name, spy)

    keep("llama_model_load_from_file", 1)
    keep("llama_init_from_model", 1)
    monkeypatch.setattr(llamacpp, "has_gpus", lambda: True)
    options = options_of(LlamaOptions, {"context_length": 64, "threads": 1, **given}, "GGUF models")
    with closing(LlamaCpp(shipped_path("demo-tiny"), options)):
        assert {name: seen[name] for name in wanted} == wanted


def test_what_llama_cpp_refuses() -> None:
    path, small = shipped_path("demo-tiny"), {"context_length": 64, "threads": 1}
    with pytest.raises(ModelError, match=r"^cannot create a context of .*: quantized V cache requires flash_attn"):
        LlamaCpp(path, options_of(LlamaOptions, {**small, "flash_attn": "off", "cache_type_v": "q8_0"}, "x"))
    with pytest.raises(OptionError, match=r"^engine cache_type_v cannot be set, since exact passes need their own"):
        options_of(LlamaOptions, {"exact": 1, "cache_type_v": "q8_0"}, "x")


@pytest.mark.skipif(has_gpus(), reason="needs a llama.cpp without GPUs")
@pytest.mark.parametrize("given", [{"main_gpu": 1}, {"tensor_split": "3,1"}, {"split_mode": "row"}, {"kv_offload": 0}])
def test_options_for_gpus_without_any(given: dict[str, Value]) -> None:
    (name,) = given
    with pytest.raises(CapabilityError, match=f"^--engine {name} cannot be used: llama.cpp was built without"):
        LlamaCpp(shipped_path("demo-tiny"), options_of(LlamaOptions, given, "x"))


def test_choices_are_known_to_llama_cpp() -> None:
    for name, prefix in (
        ("split_mode", "LLAMA_SPLIT_MODE"),
        ("load_mode", "LLAMA_LOAD_MODE"),
        ("cache_type_k", "GGML_TYPE"),
    ):
        option = OPTIONS[name]
        assert isinstance(option, Choice)
        assert [word for word in option.words if not hasattr(lib, f"{prefix}_{word.upper()}")] == []
