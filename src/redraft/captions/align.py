"""Where an old text ends in a new one, and how much two texts have in common.

Texts are sequences: words, lines, characters or ids.  For similar texts, such as successive ones of a recogniser, time
grows with their length; for others, with the product of their lengths, some sixty items per machine word.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from redraft.decoding.types import common_prefix

#: Differences up to which only the places near the diagonal are looked at.
_FEW = 32


def end_of(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Return how many items of ``new`` stand for all of ``old``: what follows them is new.

    It is the beginning of ``new`` with the smallest Levenshtein distance to ``old``; of several, one that ends with the
    same item, behind what both begin with; of these, the one whose length is nearest, and the shorter one of two.
    """
    same = common_prefix(old, new)
    if same == len(old):
        return same
    old, new = old[same:], new[same : 2 * len(old) + 1 - same]
    found = _near_diagonal(old, new)
    return same + (_over_all(old, new) if found is None else found)


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


def distance(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Return the Levenshtein distance: how many items must be replaced, inserted and removed."""
    return _distances(old, new)[-1] if old else len(new)


def in_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence."""
    return _common(one, other)[-1]


def _near_diagonal(old: Sequence[Hashable], new: Sequence[Hashable]) -> int | None:
    """Return `end_of` if there are few differences, else None.

    Ukkonen, "Algorithms for approximate string matching" (1985): for a growing number of differences, how far each
    diagonal, an item of the new text less one of the old, gets in the old text.
    """
    reached = {0: _slid(old, new, 0, 0)}
    for _ in range(_FEW + 1):
        ends = [diagonal for diagonal, place in reached.items() if place == len(old)]
        if ends:
            return min(_rank(old, new, len(old) + diagonal) for diagonal in ends)[-1]
        reached = dict(_further(old, new, reached))
    return None


def _further(old: Sequence[Hashable], new: Sequence[Hashable], reached: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield how far each diagonal gets with one more difference."""
    for diagonal in range(min(reached) - 1, max(reached) + 2):
        places = [reached.get(diagonal, -1)]
        places.append(places[0] + 1 if places[0] >= 0 else -1)  # another item instead
        places.append(reached.get(diagonal - 1, -1))  # an item more
        places.append(reached[diagonal + 1] + 1 if diagonal + 1 in reached else -1)  # an item less
        allowed = [place for place in places if 0 <= place <= len(old) and 0 <= place + diagonal <= len(new)]
        if allowed:
            yield diagonal, _slid(old, new, diagonal, max(allowed))


def _slid(old: Sequence[Hashable], new: Sequence[Hashable], diagonal: int, place: int) -> int:
    """Return where the items from a place of the old text on no longer equal those of the new one."""
    end = min(len(old), len(new) - diagonal)
    while place < end and old[place] == new[place + diagonal]:
        place += 1
    return place


def _over_all(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Return `end_of` by the distance of ``old`` to every beginning of ``new``."""
    found = enumerate(_distances(old, new))
    return min((distance, _rank(old, new, count)) for count, distance in found)[1][-1]


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


def _rank(old: Sequence[Hashable], new: Sequence[Hashable], count: int) -> tuple[bool, int, int]:
    """Return what makes a beginning of ``new`` worse than another one at the same distance; its length comes last."""
    return count == 0 or new[count - 1] != old[-1], abs(count - len(old)), count


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the places of each item as the bits of a number."""
    found: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        found[item] = found.get(item, 0) | 1 << place
    return found
