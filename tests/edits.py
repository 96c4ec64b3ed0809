"""Alignments by the textbook, slow and simple, which others are compared with."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def distances(words: Sequence[Hashable], text: Sequence[Hashable]) -> list[int]:
    """The Levenshtein distance of words to each beginning of a text: first the empty one, last the whole."""
    row = list(range(len(text) + 1))
    for word in words:
        last, row[0] = row[0], row[0] + 1
        for place, each in enumerate(text, 1):
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, last + (word != each))
    return row


def in_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for item in one:
        last = 0
        for place, each in enumerate(other, 1):
            last, row[place] = row[place], last + 1 if item == each else max(row[place], row[place - 1])
    return row[-1]
