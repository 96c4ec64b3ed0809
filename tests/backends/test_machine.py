"""Facts about the processor and the installed library."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from redraft.backends import machine


def test_first_processor_is_read(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "processor\t: 0\nmodel name\t: Some Xeon\nflags\t\t: sse2 amx_tile\n\nmodel name\t: Other\nflags\t\t: avx\n"
    )
    found = machine.processor(cpuinfo)
    assert found == machine.Processor("Some Xeon", frozenset({"sse2", "amx_tile"}))


def test_arm_lists_features_without_name(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nFeatures\t: asimd i8mm\n\n")
    found = machine.processor(cpuinfo)
    assert found.features == {"asimd", "i8mm"}
    assert found.name in (platform.processor(), platform.machine())


@pytest.mark.parametrize(
    ("cpuinfo", "label"),
    [
        (
            "cpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Intel(R) Xeon(R) Processor\nflags\t: avx2 amx_tile\n",
            "Intel Xeon Processor (6-207) AMX",
        ),
        (
            "cpu family\t: 6\nmodel\t\t: 158\nmodel name\t: Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz\n",
            "Intel Core i7-8700 (6-158)",
        ),
        ("processor\t: 0\nFeatures\t: asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "ARM 0x41 0xd0c"),
        ("model name\t: a|b:c\n", "a b c"),
    ],
)
def test_tables_call_processor_by_its_label(tmp_path: Path, cpuinfo: str, label: str) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert machine.processor(tmp_path / "cpuinfo").label == label


def test_this_processor_has_label() -> None:
    assert machine.processor().label


def test_system_without_list_has_no_features(tmp_path: Path) -> None:
    assert machine.processor(tmp_path / "none").features == frozenset()


def test_hash_is_that_of_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hashed() -> str:
        machine.library_hash.cache_clear()
        return machine.library_hash()

    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    try:
        nothing = hashed()
        (tmp_path / "libggml-cpu.so").write_bytes(b"one build")
        (tmp_path / "notes.txt").write_text("a")
        first = hashed()
        assert len(first) == 12 and first != nothing
        (tmp_path / "notes.txt").write_text("b")
        assert hashed() == first
        (tmp_path / "libggml-cpu.so").write_bytes(b"another build")
        assert hashed() not in (nothing, first)
    finally:
        machine.library_hash.cache_clear()
