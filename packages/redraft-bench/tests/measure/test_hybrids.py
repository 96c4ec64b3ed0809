"""Passes of a run, played again in a slot that goes back to copies."""

from __future__ import annotations

from redraft_bench.eval.record import PassRecord, Step
from redraft_bench.eval.replay import Trace, requests
from redraft_bench.scripts.hybrids import replayed


def step(seq: int, prompt: int, *passes: PassRecord) -> Step:
    return Step(seq, "", False, None, prompt, (1, 2), "", "", True, 0.0, 0.0, passes)


def test_replayed() -> None:
    first = [PassRecord(0, 20, 0, 0, 0), PassRecord(20, 1, 0, 0, 0), PassRecord(21, 1, 0, 0, 0)]
    # The source has grown behind 18 ids: these are read again, a copy is made, and the rest is read with the draft.
    second = PassRecord(18, 8, 2, 2, 2)
    steps = step(0, 20, *first), step(1, 24, second)
    found = replayed(Trace("m", "talk", "de", "ssbd", steps, tuple(requests(steps)), ""))
    assert found == {"asked": 4, "least": 22 + 8, "passes": 3 + 2, "read": 22 + 18 + 8}
