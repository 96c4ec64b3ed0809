"""The client's state for resuming: unanswered updates, and the final captions received."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from redraft import protocol
from redraft.client.wire import pieces

#: Number of unanswered final updates at which `send` waits.
MOST_OPEN = 64


class Ledger:
    """The updates and captions of one session.

    Attributes:
        open: utterance -> its newest unanswered update.
    """

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets
        self.open: dict[str, protocol.UpdateMessage] = {}
        self._unsent: dict[str, protocol.UpdateMessage] = {}
        #: (utterance, language) -> final caption, or None if there is none.
        self._ends: dict[tuple[str, str], protocol.Final | None] = {}

    def add(self, update: protocol.UpdateMessage) -> None:
        """Add an update to send.  Of utterances without a final update, only the most recent are kept."""
        # The server may never get the first update, since only the newest is sent again after a drop.
        before = self.open.get(update.utterance, update)
        update = replace(update, start=update.begun if before.begun is None else before.begun)
        self.open[update.utterance] = self._unsent[update.utterance] = update
        for name in self._partial[:-MOST_OPEN]:
            del self.open[name]

    @property
    def _partial(self) -> list[str]:
        return [name for name, update in self.open.items() if not update.final]

    @property
    def full(self) -> bool:
        """Whether too many final updates are unanswered."""
        return len(self.open) - len(self._partial) >= MOST_OPEN

    def next(self) -> protocol.UpdateMessage | None:
        """Return the next update to send."""
        return self._unsent.pop(next(iter(self._unsent))) if self._unsent else None

    def again(self) -> None:
        """After a reconnection, queue all unanswered updates again."""
        self._unsent = dict(self.open)

    def drop(self, utterance: str) -> None:
        """Remove an utterance that will get no answer."""
        self.open.pop(utterance, None)

    def conclude(self, utterance: str, language: str, final: protocol.Final | None) -> bool:
        """Record the end of an utterance in a language; return False if it was already recorded.

        Args:
            final: the final caption; None if there is none.
        """
        key = utterance, language
        news = key not in self._ends
        if news or (final and _corrected(final) > _corrected(self._ends[key])):
            self._ends[key] = final
        if all((utterance, each) in self._ends for each in self.targets):
            self.open.pop(utterance, None)
            self._unsent.pop(utterance, None)
        return news

    def has_final(self, key: tuple[str, str]) -> bool:
        """Whether there is a final caption of an utterance in a language."""
        return self._ends.get(key) is not None

    def restoring(self, most: int) -> Iterator[str | protocol.Final]:
        """Yield the messages that restore the captions on a server that was restarted; see `wire.pieces`."""
        return pieces("restore", "finals", [(final.wire(), final) for final in self._ends.values() if final], most)


def _corrected(final: protocol.Final | None) -> int:
    """Return how often a caption has been corrected."""
    return (final and final.corrected) or 0
