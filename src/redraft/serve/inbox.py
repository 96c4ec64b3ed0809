"""The updates of a session: checks their order, and tracks which are unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from redraft.captions.events import Order, Update

#: Maximum number of unanswered updates over all languages; beyond it, the connection is not read.
MOST_PENDING = 64


class Inbox:
    """Tracks the received and the unanswered updates."""

    def __init__(self) -> None:
        self._order = Order()
        #: (utterance, language) -> seq of the newest unanswered update.
        self._pending: dict[tuple[str, str], int] = {}
        #: (utterance, language) whose words that were held back are being translated.
        self._rests: set[tuple[str, str]] = set()
        self._room = asyncio.Event()
        self._room.set()

    def __contains__(self, utterance: str) -> bool:
        """Whether there was an update of an utterance."""
        return utterance in self._order

    @property
    def empty(self) -> bool:
        """Whether everything is answered."""
        return not self._pending and not self._rests

    def repeats(self, update: Update) -> bool:
        """Whether an update is a duplicate: after a drop a client may send updates again."""
        return self._order.repeats(update)

    def take(self, update: Update, targets: Iterable[str]) -> str:
        """Record an update to be answered in these languages; return an error message, or an empty string."""
        if problem := self._order.problem(update):
            return problem
        for target in targets:
            self._pending[update.utterance, target] = update.seq
            self._rests.discard((update.utterance, target))  # the update replaces it
        self._check_room()
        return ""

    def rest(self, update: Update, targets: Iterable[str]) -> None:
        """Record that the words of the newest update that were held back are to be translated."""
        self._rests.update((update.utterance, target) for target in targets)

    def answered(self, update: Update, language: str, *, rest: bool = False) -> None:
        """Record the answer to an update (or its `rest`), and to earlier ones of its utterance, in a language."""
        key = update.utterance, language
        if rest:
            self._rests.discard(key)
        elif self._pending.get(key, update.seq) <= update.seq:
            self._pending.pop(key, None)
        self._check_room()

    def clear(self) -> None:
        """Drop all unanswered updates."""
        self._pending.clear()
        self._rests.clear()
        self._check_room()

    async def room(self) -> None:
        """Wait until more updates can be accepted."""
        await self._room.wait()

    def _check_room(self) -> None:
        (self._room.clear if len(self._pending) > MOST_PENDING else self._room.set)()
