"""Texts as long as a server takes them need no more time than their length explains."""

from __future__ import annotations

import time

import pytest

from redraft.captions.capitals import Capitals
from redraft.captions.hold_back import HoldBack
from redraft.captions.sentence import sentence_ends

LENGTH = 30_000


@pytest.mark.parametrize(
    "unit", [".", " ", ", ", ". ", "a ", "A. ", "Dr. ", "。", "一.", "a", "'", '. "', "the cat and the dog and "]
)
@pytest.mark.parametrize("end", ["", "X"])
def test_time_is_not_quadratic(unit: str, end: str) -> None:
    text, held = "A B. " + unit * (LENGTH // len(unit)) + end, HoldBack()
    began = time.process_time()
    text = Capitals().lowered(text)
    held.part(text, 0.0)
    held.part(f"one {text}", 1.0)
    assert held.part(f"two {text}", 2.0, final=True) == f"two {text}"
    assert len(list(sentence_ends(text))) <= len(text)
    assert time.process_time() - began < 3
