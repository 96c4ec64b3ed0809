"""Which kernels of llama.cpp run, and the report on those that do not work."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from redraft.backends import selftest
from redraft.backends.engine import have_amx, kernels_mark, lib
from redraft.backends.llama_model import LlamaModel
from redraft.backends.options import LlamaOptions
from redraft.backends.selftest import SelfTestResult
from redraft.errors import ModelError
from redraft.models import shipped_path


@pytest.mark.parametrize(
    ("compiled", "exact", "extra"),
    [("AVX2 = 1 | ", False, True), ("AVX2 = 1 | AMX_INT8 = 1 | ", False, False), ("AVX2 = 1 | ", True, False)],
)
def test_models_are_opened_without_amx(
    monkeypatch: pytest.MonkeyPatch, compiled: str, exact: bool, extra: bool
) -> None:
    seen = []
    load = lib.llama_model_load_from_file

    def spy(path: bytes, params: Any) -> Any:
        seen.append(params.use_extra_bufts)
        return load(path, params)

    monkeypatch.setattr(lib, "llama_model_load_from_file", spy)
    monkeypatch.setattr(lib, "llama_print_system_info", compiled.encode)
    LlamaModel(shipped_path("demo-tiny"), LlamaOptions(exact=exact)).close()
    assert seen == [extra]


def test_our_build_has_no_amx() -> None:
    if not kernels_mark():
        pytest.skip("llama.cpp was built without our kernels")
    assert not have_amx()


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (SelfTestResult("right"), "passed the self-test"),
        (SelfTestResult("untested", "no room"), "could not be tested (no room)"),
    ],
)
def test_report(monkeypatch: pytest.MonkeyPatch, verdict: SelfTestResult, words: str) -> None:
    monkeypatch.setattr(selftest, "examine", lambda model: verdict)
    assert selftest.report() == words


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (SelfTestResult("wrong", "off by 2"), r"computes wrong results on this processor \(off by 2\)"),
        (
            SelfTestResult("crash", "SIGILL"),
            r"crashes on this processor \(SIGILL\); compile it here: pip",
        ),
        (SelfTestResult("hang", "not done in 60 s"), r"hangs on this processor \(not done in 60 s\)"),
    ],
)
def test_build_that_does_not_work(monkeypatch: pytest.MonkeyPatch, verdict: SelfTestResult, words: str) -> None:
    monkeypatch.setattr(selftest, "examine", lambda model: verdict)
    with pytest.raises(ModelError, match=words):
        selftest.report()


#: Multiplication by oneDNN, and attention, which multiplies by MKL.
TORCH = """import torch
matrix = torch.ones(256, 256, dtype=torch.bfloat16)
query = matrix.view(1, 1, 256, 256)
matrix @ matrix
"""
OPEN = """from redraft.backends.options import LlamaOptions
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


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra hf")
@pytest.mark.parametrize("before", [TORCH + OPEN, OPEN + TORCH])
def test_pass_after_torch_has_multiplied_does_not_crash(before: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", before + PASSES], capture_output=True, text=True, check=False, timeout=200
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
