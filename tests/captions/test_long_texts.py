"""Texts as long as a server takes them need no more time than their length explains."""

from __future__ import annotations

import time

import pytest

from redraft.captions.ending import TextEnd, lowered
from redraft.captions.sentence import sentence_ends

LENGTH = 30_000


@pytest.mark.parametrize(
    "unit", [".", " ", ", ", ". ", "a ", "A. ", "Dr. ", "。", "一.", "a", "'", '. "', "the cat and the dog and "]
)
@pytest.mark.parametrize("end", ["", "X"])
def test_time_is_not_quadratic(unit: str, end: str) -> None:
    text, ending = "A B. " + unit * (LENGTH // len(unit)) + end, TextEnd()
    began = time.process_time()
    text, _ = lowered(text, mixed=False)
    ending = ending.after(text).after(f"one {text}").after(f"two {text}", goes_on=True)
    assert ending.words[:1] == ("two",)
    assert len(list(sentence_ends(text))) <= len(text)
    assert time.process_time() - began < 3
