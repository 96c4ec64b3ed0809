"""Read a transcript on a thread, since translation may be slower than speech."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

from redraft.captions.events import Update
from redraft.captions.formats.read import Item


class Backlog:
    """Items that have been read and wait to be translated.  Reading starts with the iteration, and ends with `close`.

    An exception while reading is raised after the items read before it.

    Args:
        items: what to read; only the thread uses it.
        ahead: number of items that may wait, beyond which reading pauses.  None never pauses, and drops a partial
            update when a newer update of its utterance arrives, so at most one of each utterance waits, and all final
            ones.
    """

    def __init__(self, items: Iterable[Item], ahead: int | None = None) -> None:
        self._items, self._ahead = items, ahead
        self._waiting: deque[Item] = deque()
        self._news = threading.Condition()
        self._closed = self._over = False
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._fill, name="redraft-reading", daemon=True)

    def __iter__(self) -> Iterator[Item]:
        self._thread.start()
        while (item := self._next()) is not None:
            yield item
        if self._problem is not None:
            raise self._problem

    def hurry(self) -> None:
        """Read on without pauses, and drop partial updates that are overtaken, because the end is near."""
        with self._news:
            self._ahead = None
            waiting = list(self._waiting)
            self._waiting.clear()
            for item in waiting:
                self._put(item)
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

    def _next(self) -> Item | None:
        with self._news:
            while not self._waiting and not self._over:
                self._news.wait(0.5)  # signals are handled in between, even during silence
            item = self._waiting.popleft() if self._waiting else None
            self._news.notify_all()
            return item

    def _fill(self) -> None:
        try:
            for item in self._items:
                with self._news:
                    while self._ahead is not None and len(self._waiting) >= self._ahead and not self._closed:
                        self._news.wait()
                    if self._closed:
                        return
                    self._put(item)
                    self._news.notify_all()
        except BaseException as error:
            self._problem = error
        finally:
            with self._news:
                self._over = True
                self._news.notify_all()

    def _put(self, item: Item) -> None:
        if self._ahead is None:
            for older in [each for each in self._waiting if _overtakes(item, each)]:
                self._waiting.remove(older)
        self._waiting.append(item)


def _overtakes(item: Item, other: Item) -> bool:
    """Whether ``item`` makes ``other`` obsolete."""
    if not (isinstance(item, Update) and isinstance(other, Update)):
        return False
    return item.utterance == other.utterance and not other.final
