"""Token recycling: draft from rows that earlier passes have computed.

`Successors` are the tokens that the target chose earlier after the same context.  Luo et al., Turning trash into
treasure (2024, arXiv 2408.08696), keep the most probable successors of every token from the last row after it, and
draft a tree of them.  All computed rows are used, including those of rejected draft tokens,
so in re-translation the verification of the previous output keeps the table up to date.  There are two differences.
First, the table also has keys of two and three tokens, which are tried first: a longer matching context gives a better
guess, and the rows after a divergence are a free Jacobi iteration under the new source.  Second, the successors of a
key are the latest different argmaxes after it rather than the top tokens of one row, because finding those costs as
much as a small model's pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from redraft.decoding.types import ROOT, Draft, Rows

LONGEST_KEY = 3
#: Maximum number of successors per key.
WIDTH = 3
#: Maximum number of keys; beyond it the older half is dropped.  The vocabulary of a session is far smaller.
CAPACITY = 60_000


class Successors:
    """The table: last ids of a context -> tokens that the target chose after them, latest first.

    It is kept for the whole stream.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def learn(self, prefix: Sequence[int], draft: Draft, rows: Rows) -> None:
        """Add the rows of a pass: after the prefix and after every draft token."""
        contexts = [tuple(prefix[-LONGEST_KEY:])]  # the contexts of the root, then of the nodes
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
        """Return the successors of the longest known suffix of ``context``, and its length.

        Empty and 0 if none is known.
        """
        for length in range(min(LONGEST_KEY, len(context)), 0, -1):
            found = self._known.get(context[-length:])
            if found is not None:
                return found, length
        return (), 0
