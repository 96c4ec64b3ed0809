"""The updates of one stream: which are in order, unanswered, or of open utterances, and whether more will come.

However a stream stops, at its end or because it is dropped, that is one of two states here: it takes no more updates
(`Stream.ended`), and nothing is left to answer (`Stream.over`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from redraft.captions.ending import LONG_PAUSE
from redraft.captions.events import Order, Update
from redraft.engine.lanes import Answer

#: Maximum number of unanswered updates over all languages, beyond which no more are taken.
MOST_PENDING = 64
#: Maximum number of utterances without an end that get one when the stream ends.
MOST_OPEN = 64


class Stream(Order):
    """What a stream waits for: answers, and silence, in which the rest of a translation is shown.  Use it on a loop.

    Attributes:
        open: utterance -> its newest update, of the most recent ones that have not ended.
        ended: whether no more updates will come.

    Args:
        rest: has the rest of an update's translations shown in some languages.
        most: number of unanswered updates, over all languages, beyond which `room` waits.
    """

    def __init__(self, rest: Callable[[Update, Sequence[str]], object], most: int = MOST_PENDING) -> None:
        super().__init__()
        self.open: dict[str, Update] = {}
        self.ended = False
        self._rest, self._most = rest, most
        #: (utterance, language, whether it is the rest of the translation) -> seq of the newest that is unanswered.
        self._unanswered: dict[tuple[str, str, bool], int] = {}
        self._room = asyncio.Event()
        self._room.set()
        #: The unfinished update after which there has been silence, its languages, and what ends that.
        self._silence: tuple[Update, Sequence[str], asyncio.TimerHandle] | None = None

    @property
    def waits(self) -> bool:
        """Whether anything is unanswered."""
        return bool(self._unanswered)

    @property
    def over(self) -> bool:
        """Whether it has ended, and everything is answered or was dropped."""
        return self.ended and not self._unanswered

    def add(self, update: Update, languages: Sequence[str]) -> None:
        """Record an accepted update, to be answered in some languages; it ends the silence."""
        self._hear()
        self.open.pop(update.utterance, None)
        if not update.final:
            self.open[update.utterance] = update
            if len(self.open) > MOST_OPEN:
                del self.open[next(iter(self.open))]
        self._await(update, languages, rest=False)

    def follow(self, update: Update, languages: Sequence[str]) -> None:
        """Show the rest of an unfinished update's translations, unless another update follows soon."""
        self._hear()
        if languages and not update.final:
            timer = asyncio.get_running_loop().call_later(LONG_PAUSE, self._show_rest)
            self._silence = update, languages, timer

    def end(self) -> None:
        """Take no more updates: the rest is shown now."""
        self._show_rest()
        self.ended = True

    def close(self) -> None:
        """Take no more updates, and wait for nothing any more."""
        self.ended = True
        self.clear()

    def clear(self) -> None:
        """Wait for no answers any more."""
        self._hear()
        self._unanswered.clear()
        self._check_room()

    def _show_rest(self) -> None:
        if (silence := self._hear()) is not None:
            update, languages, _ = silence
            self._await(update, languages, rest=True)
            self._rest(update, languages)

    def _hear(self) -> tuple[Update, Sequence[str], asyncio.TimerHandle] | None:
        silence, self._silence = self._silence, None
        if silence is not None:
            silence[2].cancel()
        return silence

    def _await(self, update: Update, languages: Sequence[str], *, rest: bool) -> None:
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

    async def room(self) -> None:
        """Wait until more updates can be accepted."""
        await self._room.wait()

    def _check_room(self) -> None:
        (self._room.clear if len(self._unanswered) > self._most else self._room.set)()
