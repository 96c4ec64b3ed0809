"""Where beginnings of a translation end: what the beginning of its source supports, at the end of a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from redraft_train.prefixes import at_word_end, repeats, supported


def test_supported_prefix() -> None:
    whole = np.array([-0.1, -0.2, -0.1, -3.0], np.float32)
    assert supported(whole, np.array([-0.2, -1.2, -2.7, -0.1], np.float32), 2.5) == 2
    assert supported(whole, np.array([-0.2, -1.2, -2.5, -0.1], np.float32), 2.5) == 4
    assert supported(whole, np.array([-9.0, -0.2, -0.1, -3.0], np.float32), 2.5) == 0
    assert supported(whole, whole, 0.0) == 4
    assert supported(whole[:0], whole[:0]) == 0


def text(ids: Sequence[int]) -> str:
    """Every id is a byte."""
    return bytes(ids).decode(errors="replace")


def test_cuts_fall_between_words_or_whole_characters() -> None:
    ids = b"SEVEN THREE SIX"
    ends = {text(ids[: at_word_end(ids, length, True, text)]) for length in range(len(ids) + 1)}
    assert {end.rstrip(" ") for end in ends} == {"", "SEVEN", "SEVEN THREE", "SEVEN THREE SIX"}
    ids = "鼠狼".encode()
    for length in range(len(ids) + 1):
        kept = at_word_end(ids, length, False, text)
        assert kept <= length
        assert text(ids[:kept]) in ("", "鼠", "鼠狼")


def test_circles_are_found() -> None:
    assert repeats((40, 41, 42) * 3)
    assert not repeats((40, 41, 42) * 2)
    assert not repeats(())
