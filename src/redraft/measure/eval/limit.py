"""The limit: what a drafter that knew the output beforehand would need on this machine.

Such an oracle cuts the output into drafts as the cost curve T(n) makes best: all at once where a pass over many tokens
costs little more than one over a single token, in small pieces or one by one where it costs more.  No drafter can make
the same output by the same passes in less time, so the time of a method over the oracle's is its *distance to the
limit*, 1 at best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from redraft.decoding.cost import CostCurve
from redraft.measure.eval.record import Record, Step


class Oracle:
    """Least seconds by cost curve; remembers what it has worked out."""

    def __init__(self, curve: CostCurve) -> None:
        self._curve = curve
        self._pass: list[float] = [0.0]
        self._rest: list[float] = [0.0]

    def step(self, step: Step, tail: int) -> float:
        """Least seconds for an update: ``tail`` ids of the prompt, and the output with its end."""
        return self.seconds(tail, len(step.tokens) + step.finished) if step.passes else 0.0

    def seconds(self, tail: int, tokens: int) -> float:
        """Least seconds for ``tokens`` tokens after ``tail`` prompt tokens that have to be run as well.

        A pass over d draft tokens gives d + 1.
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
        """``_rest[t]``: least seconds for t more tokens after a pass, whose own token has to be run."""
        for length in range(len(self._rest), tokens + 1):
            best = min(self._cost(given) + self._rest[length - given] for given in range(1, length + 1))
            self._rest.append(best)


#: For every segment and update, how many ids of the prompt no cache could have held.
Tails: TypeAlias = Mapping[tuple[int, int], int]


def tails(records: Iterable[Record]) -> dict[tuple[int, int], int]:
    """The shortest tails that any line of a table has had to run: what a cache can hold is the same for all lines."""
    found: dict[tuple[int, int], int] = {}
    for record in records:
        for step in record.steps:
            if step.passes:
                key, tail = (record.segment, step.seq), max(1, step.prompt - step.passes[0].cached)
                found[key] = min(tail, found.get(key, tail))
    return found


def distance(records: Iterable[Record], curve: CostCurve, tails: Tails) -> float | None:
    """Seconds of all updates over the oracle's for the same outputs; None if there was no pass."""
    oracle, spent, least = Oracle(curve), 0.0, 0.0
    for record in records:
        for step in record.steps:
            spent += step.seconds
            least += oracle.step(step, tails.get((record.segment, step.seq), 1))
    return spent / least if least else None
