"""Line breaks end an output that has text: sorting a vocabulary, and finding the end in it."""

from __future__ import annotations

import pytest

from redraft.decoding.ends import LineBreaks, first_line

#: 0 "", 1 " a", 2 "\n", 3 ".\n\n", 4 " ", 5 " \n", 6 "\nb"
TOKENS = [b"", b" a", b"\n", b".\n\n", b" ", b" \n", b"\nb"]
BREAKS = LineBreaks.of(TOKENS)


def test_vocabulary() -> None:
    assert LineBreaks(frozenset({2, 5, 6}), frozenset({3}), frozenset({0, 2, 4, 5})) == BREAKS


@pytest.mark.parametrize(
    ("output", "length"),
    [
        ((), None),
        ((1, 1), None),
        ((1, 2, 1), 1),
        ((1, 1, 3, 1), 3),
        ((2, 4, 1, 1), None),  # breaks before the text
        ((2, 2, 1, 5), 3),
        ((2, 2), None),
        ((0, 2, 1, 2), 3),  # a control token before the text
        ((1, 6), 1),
    ],
)
def test_end(output: tuple[int, ...], length: int | None) -> None:
    assert BREAKS.end(output) == length


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2003"])
def test_white_space_of_any_script(space: str) -> None:
    breaks = LineBreaks.of([space.encode(), f"{space}\n".encode(), b"a", b"\n"])
    assert [breaks.end(output) for output in ((0, 3), (1, 2), (0, 1, 2, 3))] == [None, None, 3]


def test_first_line() -> None:
    assert [first_line(token) for token in TOKENS] == [b"", b" a", b"", b".", b" ", b" ", b""]
