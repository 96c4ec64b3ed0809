"""When llama.cpp may choose its kernels: a self-test's result is stored for a build and a processor."""

from __future__ import annotations

import os
import subprocess
import sys
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
    monkeypatch.setattr(kernels, "tiles_are_ours", lambda: True)  # another test may have loaded torch
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
    ("here", "loaded", "given", "ours", "told"),
    [
        (AMX, False, None, True, ["AVX512_CORE_BF16", "AVX512"]),
        (AMX, True, None, False, ["AVX512_CORE_BF16", "AVX512"]),
        (AMX, True, "AVX2", True, ["AVX2", "AVX2"]),
        (OTHER, True, None, True, [None, None]),
    ],
)
def test_torch_and_llama_cpp_do_not_both_use_amx(
    monkeypatch: pytest.MonkeyPatch,
    here: Processor,
    loaded: bool,
    given: str | None,
    ours: bool,
    told: list[str | None],
) -> None:
    monkeypatch.setattr(kernels, "processor", lambda: here)
    monkeypatch.setitem(sys.modules, "torch", kernels)
    if not loaded:
        monkeypatch.delitem(sys.modules, "torch")
    for name in kernels.NO_TILES:
        monkeypatch.setenv(name, given or "")
        if given is None:
            monkeypatch.delenv(name)
    assert kernels.tiles_are_ours.__wrapped__() is ours
    assert [os.environ.get(name) for name in kernels.NO_TILES] == told


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
    environment = {name: value for name, value in os.environ.items() if name not in kernels.NO_TILES}
    command = [sys.executable, "-c", before + PASSES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
