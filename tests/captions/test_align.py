"""The aligner against the textbook's, and its time."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence

import pytest

from redraft.captions import align
from redraft.captions.align import end_of, in_common
from tests import edits

PAIRS = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 4000


def simple(old: Sequence[object], new: Sequence[object]) -> int:
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if same == len(old):
        return same
    found = edits.distances(old[same:], new[same:])

    def rank(count: int) -> tuple[int, bool, int, int]:
        ends = count > 0 and new[same + count - 1] == old[-1]
        return found[count], not ends, abs(count - (len(old) - same)), count

    return same + min(range(len(found)), key=rank)


def pair(drawn: random.Random) -> tuple[list[int], list[int]]:
    """An old text, and a revision of it that goes on, or another text altogether."""
    known = range(drawn.choice([1, 2, 3, 10, 100]))
    old = drawn.choices(known, k=drawn.randint(0, 16))
    kept = drawn.choice([0.0, 0.5, 0.9, 1.0])
    new = [each if drawn.random() < 0.8 else drawn.choice(known) for each in old if drawn.random() < kept]
    return old, new + drawn.choices(known, k=drawn.randint(0, 10))


@pytest.mark.parametrize("few", [0, 2, 32])
def test_as_the_textbook(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(align, "_FEW", few)
    drawn = random.Random(few)
    for _ in range(PAIRS):
        old, new = pair(drawn)
        assert end_of(old, new) == simple(old, new), (old, new)
        assert in_common(old, new) == edits.in_common(old, new), (old, new)


@pytest.mark.parametrize("revised", [0, 0.5, 0.999], ids=["first", "middle", "last"])
def test_time_is_linear(revised: float) -> None:
    """A revised word costs what the words cost: sixteen times the words take no more than some forty times as long."""

    def seconds(count: int) -> float:
        old = random.Random(1).choices(range(800), k=count)
        new = [*old, 801, 802]
        new[int(revised * count)] = 900
        best = 1.0
        for _ in range(5):
            began = time.process_time()
            assert end_of(old, new) == count
            best = min(best, time.process_time() - began)
        return best

    assert seconds(16_000) < 40 * seconds(1000) + 0.002


def test_texts_that_differ_throughout() -> None:
    """The product of their lengths, but bits of machine words: it took 20 s."""
    old, new = random.Random(1).choices(range(800), k=4000), random.Random(2).choices(range(800), k=4000)
    began = time.process_time()
    end_of(old, new)
    assert time.process_time() - began < 2
