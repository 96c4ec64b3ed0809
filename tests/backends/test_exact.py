"""Exact backends on random models with the heads of real ones: rows depend on their prefix alone, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.exact_streams import METHODS
from tests.gguf_models import FAMILIES

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "families"),
    [
        ("Q4_K_M", tuple(family for family in FAMILIES if family != "heads of 80")),
        ("Q4_0", ("Gemma 2",)),
        ("Q8_0", ("Gemma 3",)),
        ("F32", ("Qwen3", "Gemma 2", "Phi-3", "heads of 80")),
        ("BF16", ("Llama 3",)),
    ],
)
def test_bit_equal_rows(tmp_path: Path, format: str, families: tuple[str, ...]) -> None:
    # In a process of its own: llama.cpp chooses its kernels once a process.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GGML_")}
    command = [sys.executable, "-m", "tests.backends.exactness", format, str(tmp_path), *families]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 of ") == 4 * len(families)


@pytest.mark.slow
@pytest.mark.parametrize(("format", "family"), [("F32", "Qwen3"), ("Q4_K_M", "Gemma 3")])  # the rest takes minutes
def test_streams_at_beta_0_have_ids_of_greedy_decoding(tmp_path: Path, format: str, family: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GGML_")}
    command = [sys.executable, "-m", "tests.backends.exact_streams", format, str(tmp_path), family]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 of ") == 2 * len(METHODS)  # with one slot and with two
