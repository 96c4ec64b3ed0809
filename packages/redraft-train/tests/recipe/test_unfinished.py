"""Sources that end as a recogniser's unfinished texts do."""

from __future__ import annotations

import random

import pytest

from redraft_train.recipe.unfinished import MARKS, NUMBERS, WRONG, shares, unfinished

WORDS = "we saw her duck under the table".split()


def test_shares() -> None:
    generator = random.Random(0)
    made = [unfinished(WORDS, ["zebra"], generator) for _ in range(4000)]
    assert all(
        (len(words) == len(WORDS) and words[:right] == WORDS[:right]) or right == len(WORDS) for words, right in made
    )
    assert sum(right < len(WORDS) for _, right in made) / 4000 == pytest.approx(WRONG, abs=0.03)
    assert sum(words[-1].endswith(".") for words, _ in made) / 4000 == pytest.approx(MARKS["."], abs=0.03)
    assert max(len(WORDS) - right for _, right in made) == max(NUMBERS)
    cut = [words[right] for words, right in made if right < len(WORDS) and not words[right].startswith("zebra")]
    assert all(any(word.startswith(each.rstrip(".,?")) for word in WORDS) for each in cut) and cut


def test_one_word() -> None:
    generator = random.Random(0)
    assert {right for _, right in (unfinished(["I"], ["a"], generator) for _ in range(50))} == {0, 1}


def test_measured() -> None:
    found = dict(shares([["That was the eve.", "That was the epo", "That was the epoch of"], ["It is", "It is."]]))
    assert found["ends with ."] == pytest.approx(1 / 3)
    assert found["wrong"] == pytest.approx(2 / 3)
    assert found["cut"] == pytest.approx(1 / 3)
