"""The meter: passes of the output that was kept, and those of other decodings of the same text."""

from __future__ import annotations

import pytest

from redraft.decoding.types import Draft, Provenance, Score
from redraft_bench.eval.meter import Meter

PROMPT = (1, 2, 3)


def decoding(meter: Meter, output: tuple[int, ...]) -> None:
    """One pass for each token, and one for the end."""
    meter.begin()
    for length in range(len(output) + 1):
        meter([(0, Score(PROMPT + output[:length])), (1, Score((9,)))], 0.5)


@pytest.mark.parametrize(
    ("outputs", "kept", "passes", "second"),
    [
        ([(7, 8)], (7, 8), 3, 0),
        ([(7, 8), (7, 8, 6)], (7, 8, 6), 4, 3),  # decoded again, and better
        ([(7, 8), (7, 9, 6)], (7, 8), 3, 4),  # decoded again in vain
        ([(7,), (7,)], (7,), 2, 2),
        ([(), (5, 6)], (5, 6), 3, 1),
        ([], (), 0, 0),
    ],
)
def test_second_decodings(outputs: list[tuple[int, ...]], kept: tuple[int, ...], passes: int, second: int) -> None:
    meter = Meter()
    for output in outputs:
        decoding(meter, output)
    taken = meter.take(len(PROMPT), kept, True)
    assert (len(taken.passes), taken.second) == (passes, second)
    assert taken.seconds == 0.5 * (passes + second)
    assert sum(each.accepted + 1 for each in taken.passes) == (len(kept) + 1 if passes else 0)
    assert meter.take(len(PROMPT), (), True).seconds == 0


def test_accepted_tokens_of_last_pass() -> None:
    for finished, accepted in ((True, 2), (False, 1)):
        meter = Meter()
        meter.begin()
        meter([(0, Score(PROMPT, Draft.chain((5, 6, 7), Provenance.PREVIOUS)))], 0.1)
        (only,) = meter.take(len(PROMPT), (5, 6), finished).passes
        assert (only.depth, only.accepted) == (3, accepted)
