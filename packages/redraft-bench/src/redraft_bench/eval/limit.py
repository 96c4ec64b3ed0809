"""The limit: the least time that a drafter with perfect knowledge of the output would need on this machine.

This oracle splits the output into drafts as is best under the cost curve T(n): all at once if a pass over many tokens
costs little more than one over a single token, otherwise in small pieces or one by one.  No drafter can produce the
same output with the same passes in less time.  The time of a method divided by the oracle's is its *distance to the
limit*, at best 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from redraft.decoding.backend import CostCurve
from redraft_bench.eval.record import Record, Step


class Oracle:
    """Computes the least time under a cost curve; results are memoized."""

    def __init__(self, curve: CostCurve) -> None:
        self._curve = curve
        self._pass: list[float] = [0.0]
        self._rest: list[float] = [0.0]

    def step(self, step: Step, tail: int) -> float:
        """Return the least seconds for an update with ``tail`` uncached prompt ids; its end token counts as output."""
        return self.seconds(tail, len(step.tokens) + step.finished) if step.decoded else 0.0

    def seconds(self, tail: int, tokens: int) -> float:
        """Return the least seconds for ``tokens`` output tokens after ``tail`` uncached prompt ids.

        A pass over d draft tokens yields d + 1 tokens.
        """
        if tokens <= 0:
            return self._cost(tail)
        self._extend(tokens)
        return min(self._cost(tail + given - 1) + self._rest[tokens - given] for given in range(1, tokens + 1))

    def _cost(self, new: int) -> float:
        while len(self._pass) <= new:
            self._pass.append(self._curve(len(self._pass)))
        return self._pass[new]

    def _extend(self, tokens: int) -> None:
        """Compute ``_rest[t]``: least seconds for t more tokens after a pass, whose last token is not cached yet."""
        for length in range(len(self._rest), tokens + 1):
            best = min(self._cost(given) + self._rest[length - given] for given in range(1, length + 1))
            self._rest.append(best)


#: (segment, seq) -> number of prompt ids that cannot have been cached.
Tails: TypeAlias = Mapping[tuple[int, int], int]


def tails(records: Iterable[Record]) -> dict[tuple[int, int], int]:
    """Return the shortest uncached tail of each update over all lines of a table.

    What can be cached is the same for all.
    """
    found: dict[tuple[int, int], int] = {}
    for record in records:
        for step in record.steps:
            if step.passes:
                key, tail = (record.segment, step.seq), max(1, step.prompt - step.passes[0].cached)
                found[key] = min(tail, found.get(key, tail))
    return found


def distance(records: Iterable[Record], curve: CostCurve, tails: Tails) -> float | None:
    """Return the seconds of all updates divided by the oracle's; None if there was no pass."""
    oracle, spent, least = Oracle(curve), 0.0, 0.0
    for record in records:
        for step in record.steps:
            spent += step.seconds
            least += oracle.step(step, tails.get((record.segment, step.seq), 1))
    return spent / least if least else None
