"""What zig's compiler is asked for (`tools.zig`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import zig


@pytest.mark.parametrize(
    ("gcc", "expected"),
    [
        ("-march=armv8-a", "-mcpu=generic+v8a"),
        ("-march=armv8.2-a+dotprod+fp16", "-mcpu=generic+v8_2a+dotprod+fullfp16"),
        ("-march=armv9.2-a+sve+i8mm+sve2+sme", "-mcpu=generic+v9_2a+sve+i8mm+sve2+sme"),
        ("-mavx2", "-mavx2"),
        ("-march=native", "-march=native"),
        ("-DNAME=-march=armv8-a", "-DNAME=-march=armv8-a"),
    ],
)
def test_names_of_processors(gcc: str, expected: str) -> None:
    assert zig.translate(gcc) == expected


def test_command_runs_with_its_own_status(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(3)", "-march=armv8.6-a+i8mm", "a b"]
    done = subprocess.run(
        [sys.executable, zig.__file__, *command], capture_output=True, text=True, check=False, timeout=200
    )
    assert (done.returncode, done.stdout.strip()) == (3, "['-mcpu=generic+v8_6a+i8mm', 'a b']")
