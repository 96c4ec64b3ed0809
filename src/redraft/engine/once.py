"""A one-shot request: one prompt and one answer, which belong to no stream.

It is a unit of the scheduler's work, like a lane.  It waits until a slot is free, takes the one that holds the longest
beginning of its prompt, and drafts the answer that was given there; what it computes is not changed by either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redraft.decoding.cost import CostCurve
from redraft.decoding.drive import Searching, resumed
from redraft.decoding.types import Asking, Rows, Score
from redraft.engine.slots import Ids, Slot, Wish
from redraft.errors import RedraftError

log = logging.getLogger(__name__)


class Failed(RedraftError):
    """A pass has failed."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a one-shot request computes.

    Attributes:
        wish: what it reads.
        run: given a draft, asks for scores; returns the result, and the ids of the answer, which may be a draft.
    """

    wish: Wish
    run: Callable[[Ids], Asking[tuple[Any, Ids]]]


class Once:
    """A one-shot request.

    Args:
        make: makes the task; called once, on the engine's thread, where tokenizers may be used.
        done: called on the engine's thread with the result, or with what has gone wrong.
        grown: called there with the ids of the answer so far, after every pass.
    """

    def __init__(
        self,
        make: Callable[[], Task],
        done: Callable[[Any], object],
        grown: Callable[[Ids], None] | None = None,
    ) -> None:
        self._make, self._done, self._grown = make, done, grown
        self.task = Task(Wish(), _nothing)
        #: The request that it waits for; None if there is none.
        self.score: Score | None = None
        self.turn = 0
        self.worked: float | None = None
        #: Whether it has had its turn, and ids of the answer once that is complete.
        self.begun, self.answer = False, Ids()
        self._asking: Asking[tuple[Any, Ids]] | None = None
        self._search = Searching()

    @property
    def running(self) -> bool:
        """Whether it is being answered."""
        return self._asking is not None

    @property
    def idle(self) -> bool:
        """Whether it has been answered."""
        return self.begun and not self.running

    def prepare(self) -> None:
        """Make the task; whatever is wrong with the request is its result."""
        try:
            self.task = self._make()
        except Exception as error:
            if not isinstance(error, RedraftError):
                log.exception("a request could not be read")
            self.begun = True
            self._done(error)

    def begin(self, slot: Slot, now: float) -> None:
        """Start; it may complete without a pass."""
        self.begun, self._asking = True, self.task.run(slot.draft(self.task.wish))
        self._send(self._asking, None)

    def advance(self, rows: Rows, now: float) -> None:
        """Continue with the rows that were asked for."""
        if self._asking is not None:
            self._send(self._asking, rows)
            if self._grown and self.score is not None:
                self._grown(self.score.prefix[len(self.task.wish.prompt) :])

    def overdue(self, now: float, curve: CostCurve | None) -> bool:
        """Whether the current request for scores is one of a search that takes too long."""
        return bool(self.score and self.score.spare and self._search.is_over(self.score.spare, curve, now))

    def decline(self, now: float) -> None:
        """End the search that the current request for scores is of."""
        if self._asking is not None:
            self._send(self._asking, None, declined=True)

    def _send(self, asking: Asking[tuple[Any, Ids]], rows: Rows | None, *, declined: bool = False) -> None:
        try:
            self.score = resumed(asking, rows, declined=declined)
        except StopIteration as stop:
            self._asking = self.score = None
            result, self.answer = stop.value
            self._done(result)

    def fail(self, reason: str, now: float) -> None:
        """Answer with a failure."""
        if self.running:
            self.close()
            self._done(Failed(f"the text could not be translated: {reason}"))

    def close(self) -> None:
        """Drop it without an answer."""
        self.begun = True
        if self._asking is not None:
            self._asking.close()
            self._asking = self.score = None


def _nothing(draft: Ids) -> Asking[tuple[Any, Ids]]:
    yield from ()
    return None, ()
