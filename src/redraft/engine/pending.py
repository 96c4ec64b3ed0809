"""What a stream waits for: answers to its updates, and silence, in which the rest of a translation is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from redraft.captions.ending import LONG_PAUSE
from redraft.captions.events import Update
from redraft.engine.lanes import Answer

#: Maximum number of unanswered updates over all languages; beyond it, no more are taken.
MOST_PENDING = 64


class Pending:
    """The updates of a stream that are unanswered.

    Args:
        most: number of them, over all languages, beyond which `room` waits.
    """

    def __init__(self, most: int = MOST_PENDING) -> None:
        self._most = most
        #: (utterance, language, whether it is the rest of the translation) -> seq of the newest that is unanswered.
        self._unanswered: dict[tuple[str, str, bool], int] = {}
        self._room = asyncio.Event()
        self._room.set()

    def __bool__(self) -> bool:
        """Whether anything is unanswered."""
        return bool(self._unanswered)

    def add(self, update: Update, languages: Iterable[str], *, rest: bool = False) -> None:
        """Record an update to be answered in these languages; with ``rest``, that of all of its translation."""
        for language in languages:
            self._unanswered.pop((update.utterance, language, True), None)  # it is replaced
            self._unanswered[update.utterance, language, rest] = update.seq
        self._check_room()

    def answered(self, answer: Answer) -> None:
        """Record the answer to an update, and to earlier ones of its utterance."""
        key = answer.update.utterance, answer.language, answer.rest
        if self._unanswered.get(key, answer.update.seq) <= answer.update.seq:
            self._unanswered.pop(key, None)
        self._check_room()

    def clear(self) -> None:
        """Drop all unanswered updates."""
        self._unanswered.clear()
        self._check_room()

    async def room(self) -> None:
        """Wait until more updates can be accepted."""
        await self._room.wait()

    def _check_room(self) -> None:
        (self._room.clear if len(self._unanswered) > self._most else self._room.set)()


class Silence:
    """Calls a function if no other update follows an unfinished one for a while.

    Args:
        rest: called with the update and the languages that it is translated into, to show the rest of its
            translations.
    """

    def __init__(self, rest: Callable[[Update, Sequence[str]], object]) -> None:
        self._rest = rest
        self._unfinished: tuple[Update, Sequence[str]] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, update: Update, languages: Sequence[str]) -> None:
        """Wait again, from this update on; there is nothing to wait for after a final one, and without languages."""
        self.stop()
        if languages and not update.final:
            self._unfinished = update, languages
            self._timer = asyncio.get_running_loop().call_later(LONG_PAUSE, self.over)

    def over(self) -> None:
        """Wait no longer: no other update will follow."""
        unfinished = self._unfinished
        self.stop()
        if unfinished is not None:
            self._rest(*unfinished)

    def stop(self) -> None:
        """Stop waiting."""
        self._unfinished = None
        if self._timer is not None:
            self._timer.cancel()
