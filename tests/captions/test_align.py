"""The aligner against the textbook's, and its time."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence

import pytest

from redraft.captions.align import in_common, seam
from tests import edits

PAIRS = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 4000


def pair(drawn: random.Random) -> tuple[list[int], list[int]]:
    """An old text, and a revision of it that goes on, or another text altogether."""
    known = range(drawn.choice([1, 2, 3, 10, 100]))
    old = drawn.choices(known, k=drawn.randint(0, 16))
    kept = drawn.choice([0.0, 0.5, 0.9, 1.0])
    new = [each if drawn.random() < 0.8 else drawn.choice(known) for each in old if drawn.random() < kept]
    return old, new + drawn.choices(known, k=drawn.randint(0, 10))


def test_in_common_as_the_textbook() -> None:
    drawn = random.Random(0)
    for _ in range(PAIRS):
        old, new = pair(drawn)
        assert in_common(old, new) == edits.in_common(old, new), (old, new)


def test_texts_that_differ_throughout() -> None:
    """The product of their lengths, but bits of machine words: it took 20 s."""
    old, new = random.Random(1).choices(range(800), k=4000), random.Random(2).choices(range(800), k=4000)
    began = time.process_time()
    seam(old, (), new)
    assert time.process_time() - began < 2


def simple_seam(before: Sequence[object], behind: Sequence[object], new: Sequence[object]) -> int:
    """The smallest sum of distances of all places, by the textbook."""
    left = edits.distances(before, new)
    right = [min(edits.distances(behind, new[place:])) for place in range(len(new) + 1)]
    return min(one + other for one, other in zip(left, right, strict=True))


def test_seam_as_the_textbook() -> None:
    drawn = random.Random(3)
    for _ in range(PAIRS // 4):
        old, new = pair(drawn)
        place = drawn.randint(0, len(old))
        before, behind = old[:place], old[place:]
        found = seam(before, behind, new)
        total = edits.distances(before, new)[found] + min(edits.distances(behind, new[found:]))
        assert total == simple_seam(before, behind, new), (before, behind, new)


@pytest.mark.parametrize(
    ("before", "behind", "new", "place"),
    [
        ("abc", "de", "abcde", 3),
        ("abc", "de", "abde", 2),  # the last one was removed
        ("abc", "de", "abxyde", 4),  # two replace it
        ("abc", "de", "abcxde", 3),  # what is added at the place is behind it
        ("abc", "de", "ab", 2),  # the end is missing
        ("abc", "", "abx", 3),
        ("abcdef", "g", "abxycd", 6),
    ],
)
def test_seam(before: str, behind: str, new: str, place: int) -> None:
    assert seam(before, behind, new) == place
