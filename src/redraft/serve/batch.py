"""Choose the requests of one batched pass, within a budget of new tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from redraft.decoding.cost import CostCurve
from redraft.decoding.types import EMPTY_DRAFT, Score
from redraft.serve.lanes import Lane
from redraft.serve.slots import Slot

#: Longest pass in seconds; a new request waits at most this long for the next one.
LONGEST_PASS = 0.1
LEAST_BUDGET, MOST_BUDGET = 16, 2048
#: Budget for backends whose passes cost the same at any size.
UNLIMITED = 1 << 40
#: Maximum lanes under way at a time (one per slot), and the default, which keeps passes of a small model on the CPU
#: cheap.
MOST_LANES, USUAL_LANES = 256, 32


@dataclass(frozen=True, slots=True)
class Part:
    """A lane's share of a pass.

    Attributes:
        lane: the lane.
        slot: its cache slot.
        score: the lane's request, or an earlier piece of its prompt, whose rows are discarded.
        new: tokens of ``score`` that are not in the cache.
    """

    lane: Lane
    slot: Slot
    score: Score
    new: int

    @property
    def whole(self) -> bool:
        """Whether this is the lane's complete request."""
        return self.score is self.lane.score


def budget(curve: CostCurve, seconds: float = LONGEST_PASS) -> int:
    """Return the largest number of new tokens that one pass processes within ``seconds``.

    The result is between `LEAST_BUDGET` and `MOST_BUDGET`.
    """
    low, high = LEAST_BUDGET, MOST_BUDGET
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if curve(middle) <= seconds else (low, middle - 1)
    return low


def choose(ready: Iterable[tuple[Lane, Slot]], budget: int) -> list[Part]:
    """Choose the requests of the next pass, in the order of ``ready``.

    All are for the same model, and together they stay within the budget.  A prompt that does not fit is split: this
    pass takes the piece that fits, the cache keeps it, and later passes take the rest.  A request that cannot be split
    and is larger than the budget gets a pass of its own.

    Args:
        ready: lanes that wait for rows, the longest waiting first.
        budget: maximum number of new tokens.
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
    # The rows at the end of the prompt and the draft must be in one pass; encoder input cannot be split either.
    end = min(reused + room, len(score.prefix) - score.prompt_rows)
    if end > reused and not score.encoder:
        piece = replace(score, prefix=score.prefix[:end], draft=EMPTY_DRAFT, prompt_rows=1)
        return Part(lane, slot, piece, end - reused)
    return Part(lane, slot, score, new) if first else None
