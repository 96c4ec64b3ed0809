"""The updates of a session: whether they come in order, and which are still to be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from redraft.captions.events import Order, Update

#: Updates that may wait to be translated, over all languages; more are not read from the connection.
MOST_PENDING = 64


class Inbox:
    """What came in and what is still to be answered."""

    def __init__(self) -> None:
        self._order = Order()
        #: (utterance, language) -> seq of the newest update that is still to be answered.
        self._pending: dict[tuple[str, str], int] = {}
        self._room = asyncio.Event()
        self._room.set()

    def __contains__(self, utterance: str) -> bool:
        """Whether there was an update of an utterance."""
        return utterance in self._order

    @property
    def empty(self) -> bool:
        """Whether everything is answered."""
        return not self._pending

    def repeats(self, update: Update) -> bool:
        """Whether this update came before: after a drop a client may send again what it is not sure of."""
        return self._order.repeats(update)

    def take(self, update: Update, targets: Iterable[str]) -> str:
        """Note an update that is to be answered in these languages; what is wrong with it instead, or nothing."""
        if problem := self._order.problem(update):
            return problem
        for target in targets:
            self._pending[update.utterance, target] = update.seq
        self._check_room()
        return ""

    def answered(self, update: Update, language: str) -> None:
        """Note that an update, and with it the earlier ones of its utterance, is answered in a language."""
        key = update.utterance, language
        if self._pending.get(key, update.seq) <= update.seq:
            self._pending.pop(key, None)
        self._check_room()

    def clear(self) -> None:
        """Nothing will be answered any more."""
        self._pending.clear()
        self._check_room()

    async def room(self) -> None:
        """Wait until updates may be taken again."""
        await self._room.wait()

    def _check_room(self) -> None:
        (self._room.clear if len(self._pending) > MOST_PENDING else self._room.set)()
