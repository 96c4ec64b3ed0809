"""Read a transcript on a thread, since translation may be slower than speech."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

from redraft.captions.events import Caption, Event, Failure, Newest, Update
from redraft.captions.formats.read import Item

#: Number of items that may wait, beyond which reading pauses, unless the input is live.
_AHEAD = 4


class Backlog:
    """Items that have been read and wait to be translated.

    Reading starts with the iteration, in an event loop or without one, and ends with `close`.

    From a live input, a partial update is dropped when a newer update of its utterance arrives.  So at most one of each
    utterance waits, and all final ones; an update waits for the one that is being translated, and for final ones that
    came before it.

    An exception while reading is raised after the items read before it.

    It also knows which utterances have no final caption yet, whether they wait or were taken: `written` and `failures`.

    Attributes:
        live: whether the input is live, or hurries to its end.
        passed_over: number of updates that were dropped.

    Args:
        items: what to read; only the thread uses it.
        languages: those in which every utterance needs a final caption.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        items: Iterable[Item],
        languages: Sequence[str] = (),
        *,
        live: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._items, self._clock, self.live = items, clock, live
        #: Items, each with the time at which it was read; and that of the one that was taken last.
        self._waiting = Newest[tuple[Item, float]]()
        self._taken = 0.0
        self.passed_over = 0
        self._languages = tuple(languages)
        #: Utterance -> its newest update, and the languages without a final caption.
        self._open: dict[str, tuple[Update, Sequence[str]]] = {}
        self._news = threading.Condition()
        self._closed = self._over = self._left = False
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._fill, name="redraft-reading", daemon=True)

    def __iter__(self) -> Iterator[Item]:
        self._thread.start()
        while (read := self._next()) is not None:
            item, self._taken = read
            yield item
        if self._problem is not None:
            raise self._problem

    async def __aiter__(self) -> AsyncIterator[Item]:
        items = iter(self)
        try:
            while (item := await asyncio.to_thread(next, items, None)) is not None:
                yield item
        finally:
            with self._news:  # a cancelled task has left a thread that waits
                self._left = True
                self._news.notify_all()

    @property
    def age(self) -> float:
        """Seconds since the item was read that the iteration has yielded last."""
        return self._clock() - self._taken

    def hurry(self) -> None:
        """Read on without pauses, and drop partial updates that are overtaken, because the end is near."""
        with self._news:
            if not self.live:
                self.live = True
                waiting, self._waiting = self._waiting, Newest()
                for each in waiting.values():
                    self._put(*each)
            self._news.notify_all()

    def close(self) -> None:
        """Read no more."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until everything has been read, at most for some seconds."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def written(self, event: Event) -> None:
        """Note an event that has been written; the failure of a final update ends its utterance too."""
        with self._news:
            last, missing = self._open.get(event.utterance or "", (None, ()))
            if last is None:
                return
            if event.final if isinstance(event, Caption) else last.final and event.seq == last.seq:
                missing = [each for each in missing if event.language not in (each, None)]
            if missing:
                self._open[last.utterance] = last, missing
            else:
                del self._open[last.utterance]

    def failures(self) -> list[Failure]:
        """Return a failure for each utterance with words, which names the missing languages and has the whole text."""
        with self._news:
            return [
                Failure(f"no caption: {text}", utterance=name, language=", ".join(missing))
                for name, (newest, missing) in self._open.items()
                if (text := newest.text.strip())
            ]

    def _next(self) -> tuple[Item, float] | None:
        with self._news:
            while not (self._waiting or self._over or self._left):
                self._news.wait(0.5)  # signals are handled in between, even during silence
            if self._left or not self._waiting:
                return None
            self._news.notify_all()
            return self._waiting.take()

    def _fill(self) -> None:
        try:
            for item in self._items:
                with self._news:
                    if self._languages and isinstance(item, Update):
                        _, missing = self._open.get(item.utterance, (None, self._languages))
                        self._open[item.utterance] = item, missing
                    while not self.live and len(self._waiting) >= _AHEAD and not self._closed:
                        self._news.wait()
                    if self._closed:
                        return
                    self._put(item, self._clock())
                    self._news.notify_all()
        except BaseException as error:
            self._problem = error
        finally:
            with self._news:
                self._over = True
                self._news.notify_all()

    def _put(self, item: Item, read: float) -> None:
        if self.live and isinstance(item, Update):
            self.passed_over += self._waiting.put((item, read), item.utterance, final=item.final) is not None
        else:
            self._waiting[object()] = item, read
