"""Shared by all tests: the folder of the data, hypothesis's profiles, Ctrl-C, logging, threads, and what is skipped."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.watchdog import Watchdog

pytest_plugins = ["tests.skips"]
ROOT = Path(__file__).resolve().parent

# A shell lets what it runs in the background ignore Ctrl-C, and then a test that waits for it waits for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# "ci" is the same every time and quick; HYPOTHESIS_PROFILE=thorough looks further.
settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests of all folders, not only those below this one."""
    config.pluginmanager.register(Watchdog(), "watchdog")


def pytest_unconfigure() -> None:
    """Close what llama-cpp-python opens on import and leaves open.

    Python warns of it on its way out, by the filters of the last test that met a warning: as an error.
    """
    if (utils := sys.modules.get("llama_cpp._utils")) is not None:
        utils.outnull_file.close()
        utils.errnull_file.close()


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Leaves the loggers that a server sets up as they were: what it logs to is closed after its test."""
    found = [logging.getLogger(name) for name in ("redraft", "uvicorn", "")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in found]
    yield
    for logger, (handlers, propagate, level) in zip(found, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the shared data, REDRAFT_DATA or ../shared/data (relative to the repository); skips without it."""
    folder = (ROOT / os.environ.get("REDRAFT_DATA", "../shared/data")).resolve()
    if not folder.is_dir():
        pytest.skip("needs data: set REDRAFT_DATA to a folder with train/, test/ and asr/")
    return folder
