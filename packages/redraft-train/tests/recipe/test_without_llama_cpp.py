"""The recipe trains where llama.cpp is not installed, as on a rented GPU; only its export needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")
pytest.importorskip("fastchrf", reason="needs recipe.txt of redraft-train")

from redraft_train.recipe.stages import FINAL

#: Begins with the model that ships, and trains with export; fastchrf is only for stages with samples.
CODE = """
import json, sys
sys.modules["llama_cpp"] = sys.modules["fastchrf"] = None
from pathlib import Path
from click.testing import CliRunner
from redraft_train.recipe import __main__ as command
folder = Path(sys.argv[1])
command.begin_with_shipped(["demo-q4"], folder)
done = CliRunner().invoke(command.recipe, ["train", "--data", str(folder), "--out", str(folder / "out")])
json.dump([done.exit_code, done.output], sys.stdout)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("recipe")
    return path


@pytest.fixture(scope="module")
def trained(folder: Path) -> list[Any]:
    """Exit status and output of the training, after the beginning, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", CODE, str(folder)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_begin(trained: list[Any], folder: Path) -> None:
    assert (folder / "demo-spoken" / FINAL).exists()


def test_export_refused_before_training(trained: list[Any], folder: Path) -> None:
    status, output = trained
    assert status == 1
    assert "Error: llama.cpp cannot be loaded" in output
    assert not (folder / "out").exists()
