"""What goes into one pass: as many requests as its budget of new tokens has room for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from redraft.decoding.cost import CostCurve
from redraft.decoding.types import EMPTY_DRAFT, Score
from redraft.serve.lanes import Lane
from redraft.serve.slots import Slot

#: A pass may take this many seconds, so that nobody waits long for a place in the next one.
LONGEST_PASS = 0.1
LEAST_BUDGET, MOST_BUDGET = 16, 2048
#: The budget where what is asked for at once costs no more.
UNLIMITED = 1 << 40
#: As many lanes as there can be slots, and as many as make the passes of a small model on the CPU cheap.
MOST_LANES, USUAL_LANES = 256, 32


@dataclass(frozen=True, slots=True)
class Part:
    """A lane's part of a pass.

    Attributes:
        lane, slot: whose it is.
        score: the lane's request, or a piece of a long prompt that goes before it, whose rows nobody wants.
        new: how many of its tokens are not in the cache.
    """

    lane: Lane
    slot: Slot
    score: Score
    new: int

    @property
    def whole(self) -> bool:
        """Whether it is all that the lane has asked for."""
        return self.score is self.lane.score


def budget(curve: CostCurve, seconds: float = LONGEST_PASS) -> int:
    """The most new tokens of a pass that takes at most so many seconds; within sensible bounds."""
    low, high = LEAST_BUDGET, MOST_BUDGET
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if curve(middle) <= seconds else (low, middle - 1)
    return low


def choose(ready: Iterable[tuple[Lane, Slot]], budget: int) -> list[Part]:
    """The parts of the next pass, in the order of ``ready``: all of one model, together within the budget.

    Of a prompt that is too long for what is left a piece goes in; that is the same work in smaller portions, since the
    cache keeps it.  A request that cannot be divided and is larger than the budget goes alone.

    Args:
        ready: lanes that wait for rows, the one that has waited longest first.
        budget: new tokens.
    """
    parts: list[Part] = []
    room = budget
    for lane, slot in ready:
        score = lane.score
        if score is None or (parts and score.model != parts[0].score.model):
            continue
        part = _fitting(lane, slot, score, room, first=not parts)
        if part is not None:
            parts.append(part)
            room -= part.new
        if room <= 0:
            break
    return parts


def _fitting(lane: Lane, slot: Slot, score: Score, room: int, *, first: bool) -> Part | None:
    reused = slot.reused(score)
    new = len(score.prefix) + len(score.draft) - reused
    if new <= room:
        return Part(lane, slot, score, new)
    # The last rows and the draft belong together; what an encoder reads cannot be divided either.
    end = min(reused + room, len(score.prefix) - score.prompt_rows)
    if end > reused and not score.encoder:
        piece = replace(score, prefix=score.prefix[:end], draft=EMPTY_DRAFT, prompt_rows=1)
        return Part(lane, slot, piece, end - reused)
    return Part(lane, slot, score, new) if first else None
