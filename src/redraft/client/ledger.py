"""The client's state for resuming: unanswered updates, and the final captions received."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from redraft import protocol

T = TypeVar("T")

#: Number of unanswered final updates at which `send` waits.
MOST_OPEN = 64
#: Maximum size of one `restore` message in bytes, if the server accepts as much.
_RESTORE_BYTES = 16_000


class Ledger:
    """The updates and captions of one session.

    Attributes:
        open: utterance -> its newest unanswered update.
    """

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets
        self.open: dict[str, protocol.UpdateMessage] = {}
        self._unsent: dict[str, protocol.UpdateMessage] = {}
        self._begun: dict[str, float | None] = {}
        #: (utterance, language) -> final caption, or None if there is none.
        self._ends: dict[tuple[str, str], protocol.Final | None] = {}

    def add(self, update: protocol.UpdateMessage) -> None:
        """Add an update to send.  Of utterances without a final update, only the most recent are kept."""
        # The server may never get the first update, since only the newest is sent again after a drop.
        begun = self._begun.setdefault(update.utterance, update.time)
        update = replace(update, begun=begun)
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
        if news:
            begun = self._begun.get(utterance)
            self._ends[key] = final and replace(final, begun=begun)
        elif final and _corrected(final) > _corrected(self._ends[key]):
            self._ends[key] = final
        if all((utterance, each) in self._ends for each in self.targets):
            self.open.pop(utterance, None)
            self._unsent.pop(utterance, None)
            self._begun.pop(utterance, None)
        return news

    def restoring(self, hidden: Iterable[tuple[str, str]], most: int) -> Iterator[str | protocol.Final]:
        """Yield the messages that restore the session on a server that was restarted.

        Args:
            hidden: utterances and languages that viewers must not see.
            most: maximum length of a message in bytes.

        Yields:
            A message; or a caption for which a message would be too long.
        """
        keys = (json.dumps(key, ensure_ascii=False) for key in hidden)
        yield from _pieces("hidden", ((key, key) for key in keys), most)  # none of them is too long
        yield from _pieces("finals", ((final.wire(), final) for final in self._ends.values() if final), most)


def _corrected(final: protocol.Final | None) -> int:
    """Return how often a caption has been corrected."""
    return (final and final.corrected) or 0


def _pieces(field: str, items: Iterable[tuple[str, T]], most: int) -> Iterator[str | T]:
    """Yield messages `redraft.protocol.Restore` with these items, in JSON, and what stands for too long ones."""
    head, tail = f'{{"type":"restore","{field}":[', "]}"
    room = min(most, _RESTORE_BYTES) - len(head + tail)
    held: list[str] = []
    size = 0
    for wire, item in items:
        length = len(wire.encode()) + 1  # with a comma
        if length > most - len(head + tail):
            yield item
            continue
        if held and size + length > room:
            yield f"{head}{','.join(held)}{tail}"
            held, size = [], 0
        held.append(wire)
        size += length
    if held:
        yield f"{head}{','.join(held)}{tail}"
