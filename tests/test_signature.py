"""Signatures name the processor; those of earlier results say that it was not recorded."""

from __future__ import annotations

from pathlib import Path

from redraft.backends.machine import processor
from redraft.signature import signature, with_processor


def test_signature_names_processor() -> None:
    line = signature(Path("none.gguf"), "talk", "1234")
    assert line.endswith(f"|processor:{processor().label}")
    assert with_processor(line) == line


def test_earlier_signature_says_that_none_was_recorded() -> None:
    assert with_processor("redraft:0.1.0|machine:Linux-x86_64-2cores").endswith("|processor:not recorded")
