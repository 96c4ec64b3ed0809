"""What the target nearly chose instead of an end."""

from __future__ import annotations

import numpy as np

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.drafters.continuations import MOST, Continuations
from redraft.decoding.types import Context, Draft, Provenance, Verdict

#: All tokens with a line break are among the ends.
ENDS = frozenset({0, 1, *range(100, 1000)})
DRAFT = Draft.chain((4, 5, 6), Provenance.PREVIOUS)
#: The best tokens after the prefix and after each draft token.
RANKED = ([4], [5], [0, 7, 1, 8, 9, 10, 11, 12, 13], [9])


class Server(NumpyRows):
    """Knows the best 20 tokens, as servers do."""

    def best(self, node: int, k: int) -> list[int]:
        assert k <= 20
        return super().best(node, k)


def learnt(continuations: Continuations, verdict: Verdict) -> None:
    logits = np.zeros((len(RANKED), 14))
    for row, tokens in zip(logits, RANKED, strict=True):
        row[tokens] = range(20, 20 - len(tokens), -1)
    continuations.learn(Context((6,), (3,), (), 9), DRAFT, Server(logits, 0), verdict, ENDS)


def test_best_tokens_but_ends() -> None:
    continuations = Continuations()
    learnt(continuations, Verdict((0, 1), 0))
    assert continuations.after((3, 4, 5)) == (7, 8, 9, 10, 11, 12)[:MOST]
    assert continuations.after((3, 4)) == continuations.after((3, 4, 5, 6)) == ()


def test_passes_without_end_teach_nothing() -> None:
    continuations = Continuations()
    learnt(continuations, Verdict((0, 1), 0))
    learnt(continuations, Verdict((), 4))
    assert continuations.after((3, 4, 5))[:2] == (7, 8) and continuations.after((3,)) == ()
