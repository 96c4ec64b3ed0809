"""Records made by hand: which ids of which update were read in which pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from redraft_bench.eval.record import PassRecord, Record, Step

AR, SSBD = "ar, de", "ssbd beta=0.2, de"


def record(contender: str, segment: int, *updates: tuple[int, Sequence[PassRecord]], draft_passes: int = 0) -> Record:
    """A record of updates of a 10-id prompt, each with its output tokens and its passes."""
    steps = [
        Step(n, "a", False, None, 10, (7,) * tokens, "b", "", True, 9.0, 9.0, tuple(passes), draft_passes)
        for n, (tokens, passes) in enumerate(updates)
    ]
    return Record(segment, str(segment), contender, (*steps[:-1], replace(steps[-1], final=True)))


#: Three tokens and an end, then the same with a longer source: one by one, and by a draft of which two were kept.
ONE_BY_ONE = [(3, [PassRecord(0, 10, 0, 0, 0), *(PassRecord(n, 1, 0, 0, 0) for n in (10, 11, 12))])] * 2
ONE_BY_ONE[1] = (3, [PassRecord(8, 2, 0, 0, 0), *(PassRecord(n, 1, 0, 0, 0) for n in (10, 11, 12))])
DRAFTED = [ONE_BY_ONE[0], (3, [PassRecord(8, 5, 3, 3, 2), PassRecord(12, 1, 0, 0, 0)])]
