"""Where the new tail stands in the old one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.draft.resynchronised import Alignment


def places(old: str, new: str, most: int = 3) -> list[str]:
    alignment = Alignment([ord(each) for each in old])
    for each in new:
        alignment.add(ord(each))
    return [old[place:] for place in alignment.places(most)]


def test_one_refused_token_is_a_substitution_or_an_insertion() -> None:
    assert places("abcdef", "x") == ["bcdef", "abcdef"]


def test_a_token_that_stands_further_on_may_be_a_deletion() -> None:
    assert "def" in places("abcdef", "c", 6)


def test_the_tail_is_found_again_behind_an_insertion() -> None:
    assert places("abcdef", "xyab", 1) == ["cdef"]


def test_the_tail_is_found_again_behind_a_deletion() -> None:
    assert places("abcdefgh", "def", 1) == ["gh"]


def test_at_the_end_nothing_is_left() -> None:
    assert places("abc", "xbc") == []
    assert places("", "x") == []


texts = st.text("abc", max_size=8)


@given(texts, texts.filter(bool))
def test_places_are_those_of_least_edit_distance(old: str, new: str) -> None:
    alignment = Alignment([ord(each) for each in old])
    for each in new:
        alignment.add(ord(each))
    expected = [distance(new, old[:end]) for end in range(len(old) + 1)]
    least = min(expected)
    left_out = {end for end in range(1, len(old)) if expected[end] == least + 1 and old[end - 1] == new[-1]}
    assert set(alignment.places(100)) == {end for end in range(len(old)) if expected[end] == least} | left_out


def distance(first: str, second: str) -> int:
    """Edit distance by its definition."""
    if not first or not second:
        return len(first) + len(second)
    if first[0] == second[0]:
        return distance(first[1:], second[1:])
    return 1 + min(distance(first[1:], second), distance(first, second[1:]), distance(first[1:], second[1:]))
