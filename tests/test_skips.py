"""The summary of skipped tests, and the option that runs them, on small runs of pytest in processes of their own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

NEEDS = """
import os

import pytest

if "LIBRARY" not in os.environ:
    pytest.skip("needs a library", allow_module_level=True)

def test_library():
    pass
"""
PARTLY = """
import os

import pytest

needs_data = pytest.mark.skipif("DATA" not in os.environ, reason="needs data")

@needs_data
@pytest.mark.parametrize("number", [1, 2])
def test_data(number):
    pass

def test_nothing():
    pass
"""
PROCESSES = pytest.mark.parametrize("options", [(), ("-p", "xdist.plugin", "-n", "1")], ids=["one process", "xdist"])
#: Folders with tests.
TESTS = [ROOT / "tests", *ROOT.glob("p*/*/tests")]


def run(folder: Path, *options: str, **variables: str) -> list[str]:
    """The last lines of a run, from the summary on."""
    (folder / "test_needs.py").write_text(NEEDS)
    (folder / "test_partly.py").write_text(PARTLY)
    (folder / "pytest.ini").touch()
    # Other plugins take seconds to import.
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", *options]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.partition(" in ")[0].strip() for line in done.stdout.splitlines()]
    return lines[next((at for at, line in enumerate(lines) if " skipped ==" in line), -2) + 1 :]


@PROCESSES
def test_summary_and_option(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert run(tmp_path, *options) == ["2 tests  needs data", "1 file  needs a library", "1 passed, 3 skipped"]
    assert run(tmp_path, *options, "-k", "nothing")[-1].startswith("1 passed, 1 skipped")  # others stay noted
    first = run(tmp_path, *options, "--skipped", DATA="here")
    assert first[0] == "1 file  needs a library"
    assert first[1].startswith("2 passed, 1 skipped")  # and not test_nothing
    assert run(tmp_path, *options, "--skipped", LIBRARY="here")[-1].startswith("1 passed")


def test_reasons() -> None:
    """Each library that `make test` does not install is named with what installs it; programs are in one table."""
    wrong = []
    for path in (path for folder in TESTS for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name, reason = ast.unparse(node.func), {each.arg: ast.unparse(each.value) for each in node.keywords}
            if name == "pytest.importorskip" and not reason.get("reason", "").startswith("'needs "):
                wrong.append(f"{path}:{node.lineno}: importorskip without reason='needs ...'")
            if name.endswith("which") and path.name != "programs.py":
                wrong.append(f"{path}:{node.lineno}: use tests.programs")
    assert not wrong, "\n".join(wrong)
