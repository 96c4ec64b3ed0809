"""Small recorded work, made up."""

from __future__ import annotations

from redraft.measure.eval.record import PassRecord, Record, Step
from redraft.measure.plan.trace import RecordedWork, Work


def step(seq: int, words: int, passes: list[PassRecord], tokens: tuple[int, ...] = (), final: bool = False) -> Step:
    """An update of so many words."""
    text = " ".join(["word"] * words)
    return Step(seq, text, final, None, 4, tokens, "", "", True, 0.0, 0.0, tuple(passes))


def plain(passes: int, updates: int = 4) -> Work:
    """One sentence of so many updates, two words apart, each of as many passes over one new token."""
    one = PassRecord(10, 1, 0, 0, 0)
    steps = tuple(step(n, 2 * n, [one] * passes, (n,), n == updates) for n in range(1, updates + 1))
    return Work("ar", (Record(0, "1", "ar, de", steps),))


def trace(work: Work) -> RecordedWork:
    """A trace of nothing else."""
    return RecordedWork({work.method: work}, "made up")
