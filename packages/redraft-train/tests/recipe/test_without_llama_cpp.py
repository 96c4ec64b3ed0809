"""The recipe trains where llama.cpp is not installed, as on a rented GPU; only its export needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recipe.txt of redraft-train is not installed")
pytest.importorskip("fastchrf", reason="recipe.txt of redraft-train is not installed")

from redraft_train.recipe.stages import FINAL

#: fastchrf is only for stages with samples.
BLOCKED = "import sys; sys.modules['llama_cpp'] = sys.modules['fastchrf'] = None; "


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKED + code, *arguments], capture_output=True, text=True)


def test_command() -> None:
    done = run("from redraft_train.recipe.__main__ import recipe; recipe()", "train", "--help")
    assert done.returncode == 0, done.stderr
    assert "--no-export" in done.stdout


def test_begin(tmp_path: Path) -> None:
    code = "from pathlib import Path; from redraft_train.recipe import __main__ as command; "
    done = run(code + "command.begin_with_shipped(['demo-q4'], Path(sys.argv[1]))", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "demo-taught" / FINAL).exists()


def test_export_refused_before_training(tmp_path: Path) -> None:
    paths = ["--data", str(tmp_path), "--out", str(tmp_path / "out")]
    done = run("from redraft_train.recipe.__main__ import recipe; recipe()", "train", *paths)
    assert done.returncode == 1
    assert "Error: llama.cpp cannot be loaded" in done.stderr
    assert not (tmp_path / "out").exists()
