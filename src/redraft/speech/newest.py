"""Keeps a transcript up with its speaker where translating it takes longer than speaking it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from redraft.captions.events import Update
from redraft.captions.formats.read import Item


def newest(items: Iterable[Item]) -> Iterator[Item]:
    """The items, read on a thread of their own; partial updates that newer ones of the utterance overtake are dropped.

    So what waits is at most one partial update of each utterance, and all final ones.  What reading raises is raised
    here, after all that was read before.
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
        """Read until the end, or until nobody wants more."""
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
        """The items as they come."""
        while True:
            with self._news:
                # With a limit, so that signals are noticed while nobody speaks.
                while not self._items and not self._over:
                    self._news.wait(0.5)
                if not self._items:
                    break
                item = self._items.pop(0)
            yield item
        if self._error is not None:
            raise self._error


def _overtakes(item: Item, other: Item) -> bool:
    """Whether nobody needs to see ``other`` before ``item``."""
    if not (isinstance(item, Update) and isinstance(other, Update)):
        return False
    return item.utterance == other.utterance and not other.final
