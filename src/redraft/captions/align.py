"""Where an old text ends in a new one, and how much two texts have in common.

Texts are sequences: words, lines, characters or ids.  Time grows with the product of their lengths behind what both
begin with, some sixty items per machine word.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from redraft.decoding.types import common_prefix


def seam(before: Sequence[Hashable], behind: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Return how many items of ``new`` stand for ``before``, where the old text went on with ``behind``.

    The old text is aligned on both sides of the place, so what is added or removed before it moves nothing across it.
    It is the beginning of ``new`` with the smallest sum of the Levenshtein distances of ``before`` to it, and of
    ``behind`` to what follows, which may go on; of several, one with the most in common with both; of these, one next
    to an item that is as it was, rather the one before the place; then the one whose length is nearest, and the shorter
    one of two.
    """
    same = common_prefix(before, new)
    if same == len(before):
        return same
    old, new = before[same:], new[same : same + 2 * (len(before) - same + len(behind)) + 1]
    left = _distances(old, new)
    right = _distances(behind[::-1], new[::-1], anywhere=True)[::-1] if behind else [0] * len(left)
    common = [one + other for one, other in zip(_common(old, new), _common(behind[::-1], new[::-1])[::-1], strict=True)]

    def rank(count: int) -> tuple[int, int, bool, bool, int, int]:
        ends = count > 0 and new[count - 1] == old[-1]
        begins = bool(behind) and count < len(new) and new[count] == behind[0]
        nearest = abs(count - len(old))
        return left[count] + right[count], -common[count], not (ends or begins), not ends, nearest, count

    return same + min(range(len(left)), key=rank)


def in_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence."""
    return _common(one, other)[-1]


def _distances(old: Sequence[Hashable], new: Sequence[Hashable], *, anywhere: bool = False) -> list[int]:
    """Return the distance of ``old``, which has items, to each beginning of ``new``; or to the nearest end of it.

    Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003): a column of the table
    is two numbers with a bit an item of ``old``, where the distance is one more and where it is one less than above.
    """
    places, every, last = _places(old), (1 << len(old)) - 1, 1 << (len(old) - 1)
    more, less = every, 0
    found = [len(old)]
    for item in new:
        equal = places.get(item, 0) | less
        zero = (((equal & more) + more) ^ more) | equal
        rises, falls = less | (every & ~(zero | more)), zero & more
        found.append(found[-1] + bool(rises & last) - bool(falls & last))
        rises, falls = (rises << 1) | (not anywhere), falls << 1
        more, less = (falls | ~(zero | rises)) & every, rises & zero & every
    return found


def _common(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[int]:
    """Return the length of the longest common subsequence with each beginning of ``other``.

    Hyyrö, "Bit-parallel LCS-length computation revisited" (2004).
    """
    places, every = _places(one), (1 << len(one)) - 1
    rest = every
    found = [0]
    for item in other:
        matched = rest & places.get(item, 0)
        rest = ((rest + matched) | (rest - matched)) & every
        found.append(len(one) - rest.bit_count())
    return found


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the places of each item as the bits of a number."""
    found: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        found[item] = found.get(item, 0) | 1 << place
    return found
