"""When llama.cpp may choose its kernels: a self-test's result is stored for a build and a processor."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from redraft.backends import kernels, selftest
from redraft.backends.engine import lib
from redraft.backends.llama_model import LlamaModel
from redraft.backends.machine import Processor
from redraft.backends.selftest import SelfTestResult
from redraft.errors import ModelError
from redraft.models import shipped_path

AMX, OTHER = Processor("Some Xeon", frozenset({"avx2", "amx_tile"})), Processor("Some Core", frozenset({"avx2"}))
RIGHT, CRASH = SelfTestResult("right", True), SelfTestResult("crash", True, "SIGILL")


class Bench:
    """Stands for machine and self-test."""

    def __init__(self) -> None:
        self.here, self.build, self.verdict, self.tests = AMX, "0123456789ab", RIGHT, 0

    def examine(self, model: Path) -> SelfTestResult:
        assert model.is_file()
        self.tests += 1
        return self.verdict

    def trusted(self) -> bool:
        """As a new process would find it."""
        kernels.trusted.cache_clear()
        return kernels.trusted()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernels, "processor", lambda: bench.here)
    monkeypatch.setattr(kernels, "library_hash", lambda: bench.build)
    monkeypatch.setattr(selftest, "examine", bench.examine)
    yield bench
    kernels.trusted.cache_clear()


def test_right_build_is_tested_once(bench: Bench) -> None:
    assert bench.trusted() and bench.trusted()
    assert bench.tests == 1


def test_another_build_and_another_processor_are_tested_again(bench: Bench) -> None:
    assert bench.trusted()
    bench.build, bench.verdict = "ba9876543210", CRASH
    assert not bench.trusted()
    bench.build = "0123456789ab"
    assert bench.trusted()
    assert bench.tests == 2
    bench.here = Processor("Some Xeon", AMX.features | {"amx_int8"})
    assert not bench.trusted()
    assert bench.tests == 3


def test_processor_without_amx_is_not_tested(bench: Bench, tmp_path: Path) -> None:
    bench.here, bench.verdict = OTHER, CRASH
    assert bench.trusted()
    assert bench.tests == 0
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (CRASH, "AMX kernels crash in this build (SIGILL), so models run without them"),
        (SelfTestResult("wrong", True, "off by 2"), "AMX kernels compute wrong results in this build (off by 2)"),
        (SelfTestResult("hang", True, "not done in 60 s"), "AMX kernels hang in this build (not done in 60 s)"),
    ],
)
def test_broken_kernels_are_left_out_and_named_once_process(
    bench: Bench, caplog: pytest.LogCaptureFixture, verdict: SelfTestResult, words: str
) -> None:
    bench.verdict = verdict
    assert not bench.trusted()
    assert not kernels.trusted()
    (record,) = caplog.records
    assert words in record.getMessage()
    assert "`redraft doctor` says how to get a right build" in record.getMessage()
    assert not bench.trusted()
    assert bench.tests == 1


def test_test_that_did_not_run_is_not_remembered(bench: Bench) -> None:
    bench.verdict = SelfTestResult("untested", False, "no room")
    assert not bench.trusted() and not bench.trusted()
    assert bench.tests == 2


def test_crashing_library(bench: Bench) -> None:
    bench.verdict = SelfTestResult("crash", False, "SIGILL")
    with pytest.raises(ModelError, match=r"crashes on this processor \(SIGILL\); compile it here: CXXFLAGS="):
        bench.trusted()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"x": 1}', "null"])
def test_memory_that_cannot_be_read_is_written_again(bench: Bench, tmp_path: Path, content: str) -> None:
    file = tmp_path / "redraft" / "kernels.json"
    file.parent.mkdir()
    file.write_text(content)
    assert bench.trusted() and bench.trusted()
    assert bench.tests == 1


def test_without_place_to_remember_it_is_tested_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert bench.trusted() and bench.trusted()
    assert bench.tests == 2


def test_nor_is_home_needed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    assert bench.trusted()


@pytest.mark.parametrize(
    ("trusted", "exact", "extra"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_models_are_opened_with_kernels_that_may_run(
    monkeypatch: pytest.MonkeyPatch, trusted: bool, exact: bool, extra: bool
) -> None:
    seen = []
    load = lib.llama_model_load_from_file

    def spy(path: bytes, params: Any) -> Any:
        seen.append(params.use_extra_bufts)
        return load(path, params)

    monkeypatch.setattr(lib, "llama_model_load_from_file", spy)
    monkeypatch.setattr(kernels, "trusted", lambda: trusted)
    LlamaModel(shipped_path("demo-tiny"), exact=exact).close()
    assert seen == [extra]


@pytest.mark.parametrize(
    ("here", "verdict", "compiled", "words"),
    [
        (AMX, RIGHT, b"AMX_INT8 = 1 |", ["AMX, passed"]),
        (AMX, RIGHT, b"AVX2 = 1 |", ["without AMX, which this processor has", kernels.REBUILD]),
        (AMX, CRASH, b"AMX_INT8 = 1 |", ["AMX kernels crash (SIGILL), so they are not used", kernels.REBUILD]),
        (OTHER, CRASH, b"AVX2 = 1 |", ["this processor has no AMX"]),
    ],
)
def test_report_says_how_to_get_fast_build(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    here: Processor,
    verdict: SelfTestResult,
    compiled: bytes,
    words: list[str],
) -> None:
    monkeypatch.setattr(lib, "llama_print_system_info", lambda: compiled)
    bench.here, bench.verdict = here, verdict
    report = kernels.report()
    assert all(each in report for each in words)
    assert (kernels.REBUILD in report) == (kernels.REBUILD in words)


def test_report_tests_again(bench: Bench) -> None:
    bench.verdict = CRASH
    assert not bench.trusted()
    bench.verdict = RIGHT
    assert "AMX" in kernels.report()
    assert bench.trusted()
    assert bench.tests == 2


@pytest.mark.parametrize(
    ("features", "alone"),
    [
        (b"AVX2 = 1 | ", False),
        (b"AMX_INT8 = 1 | ", True),
        (b"REDRAFT_KERNELS = 12ab34cd | REDRAFT_TILES = 1 | AMX_INT8 = 1 | ", False),
    ],
)
def test_passes_share_no_thread_where_tiles_are_configured_once(
    monkeypatch: pytest.MonkeyPatch, features: bytes, alone: bool
) -> None:
    monkeypatch.setattr(lib, "llama_print_system_info", lambda: features)
    own = kernels.own_thread()
    assert (own is not None) == alone
    if own:
        assert own.submit(threading.get_ident).result() != threading.get_ident()
        own.shutdown()


#: Configures AMX's tiles as no program would, or releases them: ``ldtilecfg [rdi]``, ``tilerelease``, and a return.
LOAD, RELEASE = "c4e2784907c3", "c4e27849c0c3"
#: Palette 1, and eight tiles of four rows of 16 bytes.
SMALL_TILES = struct.pack("<2B14x8H16x8B8x", 1, 0, *[16] * 8, *[4] * 8)
OTHER_LIBRARY = """import ctypes, mmap, sys
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex(sys.argv[1]))
disturb = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
if "thread" in sys.argv:
    from redraft.backends.engine import lib
    lib.llama_print_system_info = lambda: b"AMX_INT8 = 1 |"  # as of another build than ours
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.decoding.types import Score
backend = open_model("demo", LlamaOptions(context_length=128, threads=1))
slot = backend.open_slot()
found = set()
for _ in range(2):
    found.add(tuple(backend.score([(slot, Score(tuple(range(5, 101))))])[0].top_k(-1, 5)))
    backend.close_slot(slot)
    slot = backend.open_slot()
    disturb(bytes.fromhex(sys.argv[2]))
print(len(found))
backend.close()
"""


@pytest.mark.skipif(
    b"AMX_INT8 = 1" not in lib.llama_print_system_info(), reason="llama.cpp uses no AMX on this processor"
)
@pytest.mark.parametrize("code", [LOAD, RELEASE])
@pytest.mark.parametrize("where", ["here", "thread"])
def test_other_library_configures_tiles(code: str, where: str) -> None:
    command = [sys.executable, "-c", OTHER_LIBRARY, code, SMALL_TILES.hex(), where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


#: Multiplication by oneDNN, and attention, which multiplies by MKL.
TORCH = """import torch
matrix = torch.ones(256, 256, dtype=torch.bfloat16)
query = matrix.view(1, 1, 256, 256)
matrix @ matrix
"""
OPEN = """from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.decoding.types import Score
backend = open_model("demo-tiny", LlamaOptions(context_length=64, threads=1))
slot = backend.open_slot()
"""
PASSES = """for length in (32, 48):
    backend.score([(slot, Score(tuple(range(5, 5 + length))))])
    matrix @ matrix
    torch.nn.functional.scaled_dot_product_attention(query, query, query)
print("alive")
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="the hf extra is not installed")
@pytest.mark.parametrize("before", [TORCH + OPEN, OPEN + TORCH])
def test_pass_after_torch_has_multiplied_does_not_crash(before: str) -> None:
    done = subprocess.run([sys.executable, "-c", before + PASSES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
