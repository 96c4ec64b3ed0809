"""The watchdog for threads, on small runs of pytest in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

CONFTEST = """
from tests.watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(grace=0.2), "watchdog")
"""
LEAVES_A_THREAD = """
import threading

def test_first():
    threading.Thread(target=threading.Event().wait, name="forgotten").start()

def test_second():
    pass
"""
ENDS_ITS_THREADS = """
import threading

def test_all():
    threading.Thread(target=threading.Event().wait, args=(0.01,)).start()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


def run(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "."]
    # Other plugins take seconds to import.
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("options", [(), ("-p", "xdist.plugin", "-n", "1")], ids=["one process", "xdist"])
def test_thread_is_left(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, LEAVES_A_THREAD, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "'forgotten' (first seen after test_it.py::test_first)" in done.stdout
    assert "2 passed, 1 error" in done.stdout


def test_threads_have_ended(tmp_path: Path) -> None:
    done = run(tmp_path, ENDS_ITS_THREADS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_suite_is_watched(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.has_plugin("watchdog")
