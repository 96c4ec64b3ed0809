"""Signatures name the processor."""

from __future__ import annotations

from pathlib import Path

from redraft.backends.machine import processor
from redraft.signature import signature


def test_signature_names_processor() -> None:
    line = signature(Path("none.gguf"), "talk", "1234")
    assert line.endswith(f"|processor:{processor().label}")
