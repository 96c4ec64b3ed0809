"""Exact backends on random models with the heads of real ones: rows depend on their prefix alone, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "families"),
    [
        ("Q4_K_M", ("Gemma 2", "heads of 80")),
        ("F32", ("Phi-3",)),
    ],
)
def test_bit_equal_rows(tmp_path: Path, format: str, families: tuple[str, ...]) -> None:
    # In a process of its own: llama.cpp chooses its kernels once a process.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GGML_")}
    command = [sys.executable, "-m", "tests.backends.exactness", format, str(tmp_path), *families]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 of ") == 4 * len(families)
