"""A one-shot request: one prompt and one answer, which belong to no stream.

It is a unit of the scheduler's work, like a lane.  It waits until a slot is free, takes the one that holds the longest
beginning of its prompt, and drafts the answer that was given there; what it computes is not changed by either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redraft.decoding.types import Asking, Rows
from redraft.engine.work import Ids, Wish, Work
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


class Once(Work):
    """A one-shot request.

    Args:
        make: makes the task; called once, on the engine's thread, where tokenizers may be used.
        done: called on the engine's thread with the result, or with what has gone wrong.
        grown: called there with the ids of the answer so far, after every pass.

    Attributes:
        begun: whether it has had its turn, or needs none any more.
        answer: ids of the answer, once that is complete.
    """

    def __init__(
        self,
        make: Callable[[], Task],
        done: Callable[[Any], object],
        grown: Callable[[Ids], None] | None = None,
    ) -> None:
        super().__init__()
        self._make, self._done, self._grown = make, done, grown
        self._task: Task | None = None
        self.begun, self.answer = False, Ids()

    @property
    def idle(self) -> bool:
        """Whether it has been answered."""
        return self.begun and not self.running

    def prepare(self) -> None:
        """Make the task; whatever is wrong with the request is its result."""
        try:
            self._task = self._make()
            self.wish = self._task.wish
        except Exception as error:
            if not isinstance(error, RedraftError):
                log.exception("a request could not be read")
            self.begun = True
            self._done(error)

    def begin(self, draft: Ids, now: float) -> None:
        """Start with the answer to an earlier request as the draft."""
        if self._task is not None:
            self.begun = True
            self.run(self._task.run(draft), now)

    def advance(self, rows: Rows | None, now: float, *, declined: bool = False) -> None:
        """Continue, and report how far the answer has grown."""
        super().advance(rows, now, declined=declined)
        if rows is not None and self._grown and self.score is not None:
            self._grown(self.score.prefix[len(self.wish.prompt) :])

    def ended(self, result: tuple[Any, Ids], now: float) -> None:
        """Pass on the result."""
        value, self.answer = result
        self._done(value)

    def fail(self, reason: str, now: float) -> None:
        """Answer with a failure."""
        if self.running:
            self.give_up()
            self._done(Failed(f"the text could not be translated: {reason}"))

    def close(self) -> None:
        """Drop it without an answer."""
        self.begun = True
        self.give_up()
