"""The verdict on a build of llama.cpp, with stand-ins for builds that are right, wrong, crash and hang."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from redraft.backends import selftest
from redraft.backends.selftest import SelfTestResult, examine, judge
from redraft.models import shipped_path

MODEL = shipped_path("demo-tiny")
SRC = Path(selftest.__file__).parents[2]

#: llama-cpp-python, of which `misbehave` is called after a pass with kernels that are not plain.
STAND_IN = """
import ctypes, os, signal, sys, time

import numpy as np

sys.path.remove(os.path.dirname(__file__))
del sys.modules["llama_cpp"]
import llama_cpp

load, decode, extra = llama_cpp.llama_model_load_from_file, llama_cpp.llama_decode, []

def loaded(path, params):
    extra[:] = [params.use_extra_bufts]
    return load(path, params)

def decoded(context, batch):
    status = decode(context, batch)
    logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(context), (batch.n_tokens, 16384))
    if extra[0]:
        misbehave(logits)
    return status

llama_cpp.llama_model_load_from_file, llama_cpp.llama_decode = loaded, decoded
llama_cpp.llama_print_system_info = lambda: FEATURES

def misbehave(logits):
"""


@pytest.fixture
def build(tmp_path: Path) -> list[str]:
    """The import path of a stand-in, which `write` makes."""
    return [str(tmp_path), str(SRC), *[each for each in sys.path if each.endswith("-packages")]]


def write(build: list[str], misbehave: str, features: str = "AVX2 = 1 | ") -> None:
    source = f"{STAND_IN}    {misbehave}\nFEATURES = {features.encode()!r}\n"
    Path(build[0], "llama_cpp.py").write_text(source, encoding="utf-8")


@pytest.mark.parametrize(
    ("misbehave", "kernels", "detail"),
    [
        ("logits *= 1.001", "right", ""),
        ("logits[:] = logits[:, ::-1].copy()", "wrong", "standard deviations"),
        ("if len(logits) == 64: logits[-1] = 0", "wrong", "standard deviations"),
        ("logits[0, 0] = np.nan", "wrong", "nan"),
        ("os.kill(os.getpid(), signal.SIGILL)", "crash", "SIGILL"),
        ("ctypes.string_at(0)", "crash", "SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "untested", "SIGKILL"),
        ("raise RuntimeError('out of memory')", "untested", "RuntimeError: out of memory"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_verdicts_on_builds(build: list[str], misbehave: str, kernels: str, detail: str) -> None:
    write(build, misbehave)
    verdict = examine(MODEL, path=build)
    assert verdict.kernels == kernels
    assert detail in verdict.detail


def test_kernels_that_redraft_does_not_use(build: list[str]) -> None:
    write(build, "ctypes.string_at(0)", "AVX2 = 1 | AMX_INT8 = 1 | ")
    assert examine(MODEL, path=build) == SelfTestResult("right")


def test_build_that_hangs(build: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(build, "time.sleep(60)")
    monkeypatch.setattr(selftest, "TIMEOUT_S", 4.0)
    assert examine(MODEL, path=build) == SelfTestResult("hang", "not done in 4 s")


def test_library_that_crashes_when_it_is_loaded(build: list[str]) -> None:
    Path(build[0], "llama_cpp.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n")
    assert examine(MODEL, path=build) == SelfTestResult("crash", "SIGILL")


def test_test_that_cannot_run_is_no_verdict(tmp_path: Path) -> None:
    verdict = examine(MODEL, python=str(tmp_path / "no-python"))
    assert verdict.kernels == "untested"
    assert "cannot be run" in verdict.detail
    assert judge([sys.executable, "-c", "import sys; sys.exit(3)"]) == SelfTestResult("untested", "status 3")


def test_statuses_of_windows_are_crashes() -> None:
    assert selftest._ending(0xC0000005, []) == "status 0xc0000005"
    assert selftest._ending(-11, ["ignored"]) == "SIGSEGV"


def test_installed_build() -> None:
    assert examine(MODEL).kernels == "right"
