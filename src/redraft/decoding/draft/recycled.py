"""Token recycling: draft what the target itself said before after the same tokens.

Luo et al., Turning trash into treasure (2024, arXiv 2408.08696), keep for every token the most probable successors of
the last row that stood after it, and draft a tree of them.  Every row that the target has computed counts, those of
refused draft tokens too, so in re-translation the verification of the previous output keeps the table warm.  Two things
differ here.  The table has keys of two and three tokens as well, which are looked up first: what followed a longer
context that comes again is the better guess, and the rows behind a divergence are a Jacobi iteration under the new
source for free.  And the successors of a key are the latest different argmaxes after it instead of the most probable
tokens of one row, since finding those costs as much as a small model's pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from redraft.decoding.types import ROOT, Draft, Rows

LONGEST_KEY = 3
#: Successors kept for a key.
WIDTH = 3
#: Most keys of the table; beyond them the older half goes.  A session's everyday vocabulary is far smaller.
CAPACITY = 60_000


class Successors:
    """The table: the last ids of a context -> what the target chose after them, the latest first.

    Lasts as long as a stream.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def learn(self, prefix: Sequence[int], draft: Draft, rows: Rows) -> None:
        """Take in the rows of a pass: that of the prefix and those of all draft tokens."""
        contexts = [tuple(prefix[-LONGEST_KEY:])]  # that of the root, then those of the nodes
        self._enter(contexts[0], rows.argmax(ROOT))
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            contexts.append((*contexts[parent + 1], token)[-LONGEST_KEY:])
            self._enter(contexts[-1], rows.argmax(node))
        if len(self._known) > CAPACITY:
            self._known = dict(islice(self._known.items(), CAPACITY // 2, None))

    def _enter(self, context: tuple[int, ...], best: int) -> None:
        for start in range(len(context)):
            key = context[start:]
            found = self._known.get(key)
            if found is None:
                self._known[key] = (best,)
            elif found[0] != best:
                self._known[key] = (best, *[token for token in found if token != best])[:WIDTH]

    def after(self, context: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """The successors of the longest known end of ``context``, and its length; nothing and 0 if none is known."""
        for length in range(min(LONGEST_KEY, len(context)), 0, -1):
            found = self._known.get(context[-length:])
            if found is not None:
                return found, length
        return (), 0
