"""Runs the command line in the process of the tests."""

from __future__ import annotations

from tests.cli.conftest import redraft

__all__ = ["redraft"]
