"""FLy's rule by hand: a mismatch is kept where the model is undecided and agrees with what follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.methods.fly import Deferred
from redraft.decoding.types import Draft, Provenance

#: After it, tokens 1 and 2 are as probable as can be, and 3 is not; the entropy of the best three is 1.06.
OPEN = [0.0, 0.4, 0.35, 0.25]
#: After these, 1, 2 or 3 is certain.
ONE, TWO, THREE = ([0.01, *(0.97 if token == each else 0.01 for each in (1, 2, 3))] for token in (1, 2, 3))


def kept(tokens: tuple[int, ...], *spread: list[float], entropy: float = 0.3, window: int = 2, top: int = 3) -> int:
    with np.errstate(divide="ignore"):
        rows = NumpyRows(np.log(np.array(spread)), 0)
    verdict = Deferred(entropy, window, top).judge(Draft.chain(tokens, Provenance.PREVIOUS), rows)
    assert verdict.accepted == tuple(range(len(verdict.accepted)))
    assert verdict.token == rows.argmax(len(verdict.accepted) - 1)
    return len(verdict.accepted)


@pytest.mark.parametrize(
    ("tokens", "spread", "expected"),
    [
        ((1, 2, 3), (ONE, TWO, THREE, ONE), 3),  # the model's own
        ((2, 3, 1), (OPEN, THREE, ONE, TWO), 3),  # another word, after which the model agrees twice
        ((2, 3, 1), (ONE, THREE, ONE, TWO), 0),  # the model was certain of another one
        ((2, 3, 1), (OPEN, TWO, ONE, TWO), 0),  # it goes on in another way at once
        ((2, 3, 1), (OPEN, THREE, TWO, TWO), 0),  # or after one token
        ((2, 3), (OPEN, THREE, ONE), 0),  # too little follows
        ((1, 2, 3, 1), (ONE, OPEN, THREE, ONE, TWO), 4),
        ((2, 3, 1, 2, 3), (OPEN, THREE, ONE, OPEN, THREE, ONE), 3),  # of two mismatches, the second is near the end
    ],
)
def test_mismatch(tokens: tuple[int, ...], spread: tuple[list[float], ...], expected: int) -> None:
    assert kept(tokens, *spread) == expected


def test_entropy_of_most_probable_tokens() -> None:
    three = -sum(p * math.log(p) for p in OPEN[1:])
    two = -sum(p * math.log(p) for p in OPEN[1:3])
    for top, entropy in ((3, three), (2, two)):
        for threshold, expected in ((entropy - 1e-5, 3), (entropy + 1e-5, 0)):
            assert kept((2, 3, 1), OPEN, THREE, ONE, TWO, entropy=threshold, top=top) == expected
