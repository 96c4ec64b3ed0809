"""What the scheduler runs: lanes of streams (`redraft.engine.lanes`), and one-shot requests (`redraft.engine.once`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redraft.decoding.cost import CostCurve
from redraft.decoding.drive import Searching, resumed
from redraft.decoding.types import Asking, Rows, Score

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a one-shot request reads, by which it finds the slot that holds most of it.

    Attributes:
        kind: answers of the same kind may be drafts for each other.
        prompt: ids of the prompt.
        source: ids of the text.
    """

    kind: str = ""
    prompt: Ids = ()
    source: Ids = ()


class Work:
    """A generator of requests for scores, and what the scheduler knows of it.

    Attributes:
        score: the request that waits for rows; None if there is none.
        worked: when it was last in a pass, in seconds of the engine's clock; None before the first.
        turn: the work with the lowest number is served first.
        wish: what it reads, if that is known before it begins.
    """

    def __init__(self) -> None:
        self.score: Score | None = None
        self.worked: float | None = None
        self.turn, self.wish = 0, Wish()
        self._asking: Asking[Any] | None = None
        self._search = Searching()

    @property
    def running(self) -> bool:
        """Whether it has begun, and has no result yet."""
        return self._asking is not None

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        raise NotImplementedError

    def begin(self, draft: Ids, now: float) -> None:
        """Start; it may complete without a pass.

        Args:
            draft: an earlier answer that may be the beginning of this one.
            now: the time in seconds of the engine's clock, as for all methods.
        """
        raise NotImplementedError

    def ended(self, result: Any, now: float) -> None:
        """Take the result of the generator."""
        raise NotImplementedError

    def fail(self, reason: str, now: float) -> None:
        """Answer with a failure."""
        raise NotImplementedError

    def run(self, asking: Asking[Any], now: float) -> None:
        """Start a generator."""
        self._asking, self._search = asking, Searching()
        self.advance(None, now)

    def advance(self, rows: Rows | None, now: float, *, declined: bool = False) -> None:
        """Continue with the rows that were asked for; with ``declined``, the search that asks for them ends instead."""
        if self._asking is None:
            return
        try:
            self.score = resumed(self._asking, rows, declined=declined)
        except StopIteration as stop:
            self._asking = self.score = None
            self.ended(stop.value, now)

    def overdue(self, now: float, curve: CostCurve | None) -> bool:
        """Whether the current request is one of a search that takes too long."""
        return bool(self.score and self.score.spare and self._search.is_over(self.score.spare, curve, now))

    def give_up(self) -> None:
        """End the generator without a result."""
        # Nothing to undo in the cache: the next request is compared with it id by id.
        if self._asking is not None:
            self._asking.close()
            self._asking = self.score = None
