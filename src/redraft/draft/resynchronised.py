"""After a divergence the old output goes on as the draft, from the place that the new output has come to.

SSBD throws the rest of its draft away at the first token that is refused.  Mostly only a word has changed, and what
followed it still follows.  Where the new output stands in the old one is told by edit distance: the new tail, from the
refused token on, is compared with every beginning of the old tail, and those of the least distance are the
hypotheses.  Right after one refused token these are that it was inserted, that it stands for one old token, or, where
it stood in the old tail too, that what lay before it was left out.
"""

from __future__ import annotations

from collections.abc import Sequence


class Alignment:
    """The last row of the edit-distance table of the new tail against all beginnings of the old tail.

    Args:
        old: the old output from the refused token on.
    """

    def __init__(self, old: Sequence[int]) -> None:
        self._old = old
        self._row = list(range(len(old) + 1))
        self._length, self._last = 0, -1

    def add(self, token: int) -> None:
        """Append a token to the new tail."""
        above, left = self._row, self._row[0] + 1
        row = [left]
        for place, other in enumerate(self._old):
            left = min(above[place] + (token != other), above[place + 1] + 1, left + 1)
            row.append(left)
        self._row = row
        self._length, self._last = self._length + 1, token

    def places(self, most: int) -> list[int]:
        """At most ``most`` places of the old tail that the new one may have come to, the likeliest first.

        These are the places of least distance, and those of one more whose token before is the new tail's last: there
        old tokens were left out.  A place behind such a token comes before others of its distance; then those come
        first at which as many old tokens lie behind as new ones.  The end, after which nothing is left, is no place.
        """
        least = min(self._row)
        found = []
        for place, distance in enumerate(self._row[:-1]):
            behind_match = place > 0 and self._old[place - 1] == self._last
            rank = 2 * (distance - least) - behind_match
            if rank <= 1:
                found.append((rank, abs(place - self._length), place))
        return [place for *_, place in sorted(found)[:most]]
