"""Faults of native code: one sentence and a status, and nothing of it outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from redraft.backends import crash
from redraft.backends.crash import explained, explained_once
from redraft.errors import ModelError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

START = "import ctypes, faulthandler, os, signal, threading\nfrom redraft.backends.crash import explained\n"


def run(script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START + script]
    environment = {"PYTHONPATH": str(Path(crash.__file__).parents[2])}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


@pytest.mark.parametrize(
    ("fault", "name", "status"),
    [
        ("ctypes.string_at(0)", "SIGSEGV", 139),
        ("os.kill(os.getpid(), signal.SIGILL)", "SIGILL", 132),
        ("ctypes.CDLL(None).abort()", "SIGABRT", 134),
        ("other = threading.Thread(target=ctypes.string_at, args=(0,)); other.start(); other.join()", "SIGSEGV", 139),
    ],
)
def test_a_fault_is_one_sentence_with_a_way_out(fault: str, name: str, status: int) -> None:
    done = run(f"faulthandler.enable()\nwith explained(\"opening model 'x.gguf'\"):\n    {fault}")
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"redraft: llama.cpp crashed ({name}) while opening model 'x.gguf': ")
    assert "--no-binary llama-cpp-python" in line and "--exact" in line


def test_afterwards_faults_are_as_before() -> None:
    done = run("faulthandler.enable()\nwith explained('a'), explained('b'):\n    pass\nctypes.string_at(0)")
    assert done.returncode == -11
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "redraft" not in done.stderr


def test_an_inner_part_does_not_end_the_outer_one() -> None:
    done = run("with explained('a'):\n    with explained('b'):\n        pass\n    ctypes.string_at(0)")
    assert "while a: " in done.stderr


def test_only_the_first_call_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(crash, "_enter", begun.append)
    monkeypatch.setattr(crash, "_leave", lambda doing: None)
    call = explained_once(divmod, "dividing")
    assert [call(7, 2), call(9, 2)] == [(3, 1), (4, 1)]
    assert begun == ["dividing"]


def test_on_windows_a_fault_is_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault() -> None:
        raise OSError("exception: access violation reading 0x0000000000000000")

    with pytest.raises(OSError, match="exception"), explained("opening"):
        fault()
    monkeypatch.setattr(crash, "_WINDOWS", True)
    with (
        pytest.raises(ModelError, match=r"crashed \(access violation reading 0x0+\) while opening: "),
        explained("opening"),
    ):
        fault()
    with pytest.raises(FileNotFoundError), explained("opening"):
        raise FileNotFoundError("no such file")
