"""The end of a growing text: how far it is trusted, and what a sentence that was cut off leaves over."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.ending import CHANCE, WEIGHT, TextEnd

words = st.lists(st.sampled_from("a b c d".split()), max_size=8).map(" ".join)


def after(*texts: str, goes_on: bool = False) -> TextEnd:
    ending = TextEnd()
    for number, text in enumerate(texts):
        ending = ending.after(text, goes_on=goes_on and number == len(texts) - 1)
    return ending


@pytest.mark.parametrize(
    ("texts", "stayed", "seen"),
    [
        (("we", "we saw", "we saw her"), 2, 2),
        (("we", "we was", "we saw her"), 1, 2),  # "was" is taken back
        (("we saw", "We saw."), 0, 0),  # the same words say nothing
        (("we saw", "Well, we saw"), 1, 1),  # inserted before it
        (("we saw", "we"), 0, 1),
        (("we", "we saw", "we saw"), 1, 1),  # "saw" is compared with the next other text
        (("we", "we saw", "we saw", "we saw her"), 2, 2),
        (("we", "we was", "we was", "we saw her"), 1, 2),
        (("", "we", ""), 0, 0),  # nor does an empty text
    ],
)
def test_last_words_are_counted(texts: tuple[str, ...], stayed: int, seen: int) -> None:
    found = after(*texts)
    assert (found.stayed - CHANCE * WEIGHT, found.seen - WEIGHT) == pytest.approx((stayed, seen))


def test_what_was_cut_off_was_not_taken_back() -> None:
    found = after("we", "we saw", "we saw it", "we saw", goes_on=True)
    assert (found.stayed - CHANCE * WEIGHT, found.seen - WEIGHT) == pytest.approx((2, 2))


def test_trust_follows_counts() -> None:
    assert after("we").trust == pytest.approx(math.sqrt(CHANCE))
    assert after("we saw", "we saw").trust == 1.0, "of a word that two texts have"
    revised, steady = after("a", "b", "c", "d", "e f"), after("a", "a b", "a b c", "a b c d", "a b c d e")
    assert revised.trust < after("a").trust < steady.trust < 1


@given(st.lists(words, max_size=12))
def test_trust_is_probability(texts: list[str]) -> None:
    assert 0 < after(*texts).trust <= 1


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (("we saw it rained",), ()),
        (("we saw it ra", "we saw"), ("it", "ra")),
        (("we saw it ra", "we was"), ("it", "ra")),
        (("we saw", "we saw her"), ()),
    ],
)
def test_words_that_were_cut_off_are_left(texts: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert after(*texts, goes_on=True).left == after(*texts, goes_on=True).begun().words == left
    assert after(*texts).left == after(*texts).begun().words == ()
