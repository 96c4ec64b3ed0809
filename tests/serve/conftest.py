"""Without the extra `serve` there is nothing to test here."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("starlette") and find_spec("websockets") else ["test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much was sent to servers to see whether they stand it."""
    servers = sys.modules.get("tests.serve.servers")
    if servers is not None and servers.FUZZED:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(servers.FUZZED.items()))
        terminalreporter.write_line(f"sent to servers at random: {counts}")
