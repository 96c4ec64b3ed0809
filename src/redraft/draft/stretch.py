"""The first stretch of an output: while nothing of the previous output has been refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Stretch:
    """How far the previous output has been taken over; shared by the drafter and the rule of one decoding.

    Attributes:
        previous: ids of the previous output.
        kept: how many of them have been kept.
        drafted: how many have been drafted so far; more than ``kept`` while a draft is under way.
        open: whether nothing has been refused yet and something is left.
    """

    previous: tuple[int, ...] = ()
    kept: int = 0
    drafted: int = 0
    open: bool = False

    def begin(self, previous: tuple[int, ...]) -> None:
        """Start a decoding."""
        self.previous, self.open = previous, bool(previous)
