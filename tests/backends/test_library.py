"""Which library of llama.cpp is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from redraft.backends import library

#: Prints the folder that the bindings were given.
PROGRAM = "from redraft.backends.library import load; print(load().folder)"


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("installed", [False, True])
def test_folder_of_library(tmp_path: Path, chosen: bool, installed: bool) -> None:
    """LLAMA_CPP_LIB_PATH comes first, then redraft-llama, then what the bindings have."""
    (tmp_path / "llama_cpp.py").write_text("import os\nfolder = os.environ.get('LLAMA_CPP_LIB_PATH')\n")
    expected = None
    if installed:
        (tmp_path / "redraft_llama" / "lib").mkdir(parents=True)
        (tmp_path / "redraft_llama" / "__init__.py").touch()
        expected = tmp_path / "redraft_llama" / "lib"
    if chosen:
        expected = tmp_path / "mine"
    sources = Path(library.__file__).parents[2]
    environment = {"PYTHONPATH": f"{tmp_path}:{sources}"} | ({library.VARIABLE: str(expected)} if chosen else {})
    program = f"import sys; sys.path = [*{[str(tmp_path), str(sources)]}, *sys.path]; {PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=200
    )
    assert done.stdout.strip() == str(expected)
