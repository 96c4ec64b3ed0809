"""Runs the command line in the process of the tests."""

from __future__ import annotations

from importlib.util import find_spec

from tests.cli.conftest import redraft

__all__ = ["redraft"]

#: What needs the extra `serve`.
collect_ignore = [] if find_spec("starlette") and find_spec("websockets") else ["test_bench_load.py"]
