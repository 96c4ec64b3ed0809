"""What is known of the processor and of the installed library."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from redraft.backends import machine


def test_the_first_processor_is_read(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "processor\t: 0\nmodel name\t: Some Xeon\nflags\t\t: sse2 amx_tile\n\nmodel name\t: Other\nflags\t\t: avx\n"
    )
    found = machine.processor(cpuinfo)
    assert found == machine.Processor("Some Xeon", frozenset({"sse2", "amx_tile"}))
    assert found.has_amx


def test_arm_lists_features_without_a_name(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nFeatures\t: asimd i8mm\n\n")
    found = machine.processor(cpuinfo)
    assert found.features == {"asimd", "i8mm"}
    assert found.name in (platform.processor(), platform.machine())
    assert not found.has_amx


def test_a_system_without_the_list_has_no_features(tmp_path: Path) -> None:
    assert machine.processor(tmp_path / "none").features == frozenset()


def test_the_hash_is_that_of_the_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hashed() -> str:
        machine.library_hash.cache_clear()
        return machine.library_hash()

    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    try:
        assert hashed() == ""
        (tmp_path / "libggml-cpu.so").write_bytes(b"one build")
        (tmp_path / "notes.txt").write_text("a")
        first = hashed()
        assert len(first) == 12
        (tmp_path / "notes.txt").write_text("b")
        assert hashed() == first
        (tmp_path / "libggml-cpu.so").write_bytes(b"another build")
        assert hashed() not in ("", first)
    finally:
        machine.library_hash.cache_clear()


def test_the_cache_folder_follows_the_environment(tmp_path: Path) -> None:
    assert machine.cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "redraft"
    assert machine.cache_folder({"XDG_CACHE_HOME": ""}) == Path.home() / ".cache" / "redraft"
