"""Skip outdated updates when translation is slower than speech."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from redraft.captions.events import Update
from redraft.captions.formats.read import Item


def newest(items: Iterable[Item]) -> Iterator[Item]:
    """Read items on a thread; a partial update is dropped when a newer update of its utterance arrives.

    So at most one partial update of each utterance waits, and all final ones.  An exception while reading is raised
    after the items read before it.
    """
    buffer = _Buffer()
    threading.Thread(target=buffer.fill, args=(items,), name="redraft-listening", daemon=True).start()
    try:
        yield from buffer.drain()
    finally:
        buffer.closed = True


class _Buffer:
    def __init__(self) -> None:
        self._items: list[Item] = []
        self._news = threading.Condition()
        self._over = False
        self._error: BaseException | None = None
        self.closed = False

    def fill(self, items: Iterable[Item]) -> None:
        """Read until the end, or until the consumer has closed the buffer."""
        try:
            for item in items:
                if self.closed:
                    return
                with self._news:
                    if self._items and _overtakes(item, self._items[-1]):
                        self._items.pop()
                    self._items.append(item)
                    self._news.notify()
        except BaseException as error:
            self._error = error
        finally:
            with self._news:
                self._over = True
                self._news.notify()

    def drain(self) -> Iterator[Item]:
        """Yield the items."""
        while True:
            with self._news:
                # The timeout lets signals be handled during silence.
                while not self._items and not self._over:
                    self._news.wait(0.5)
                if not self._items:
                    break
                item = self._items.pop(0)
            yield item
        if self._error is not None:
            raise self._error


def _overtakes(item: Item, other: Item) -> bool:
    """Whether ``item`` makes ``other`` obsolete."""
    if not (isinstance(item, Update) and isinstance(other, Update)):
        return False
    return item.utterance == other.utterance and not other.final
