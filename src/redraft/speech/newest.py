"""Skip outdated updates when translation is slower than speech."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

from redraft.captions.events import Update
from redraft.captions.formats.read import Item


def newest(items: Iterable[Item]) -> Iterator[Item]:
    """Read items on a thread; a partial update is dropped when a newer update of its utterance arrives.

    So at most one partial update of each utterance waits, and all final ones.  An exception while reading is raised
    after the items read before it.
    """
    waiting: deque[Item] = deque()
    news, over, closed = threading.Condition(), threading.Event(), threading.Event()
    problem: list[BaseException] = []

    def fill() -> None:
        try:
            for item in items:
                if closed.is_set():
                    return
                with news:
                    if waiting and _overtakes(item, waiting[-1]):
                        waiting.pop()
                    waiting.append(item)
                    news.notify()
        except BaseException as error:
            problem.append(error)
        finally:
            with news:
                over.set()
                news.notify()

    threading.Thread(target=fill, name="redraft-listening", daemon=True).start()
    try:
        while True:
            with news:
                while not waiting and not over.is_set():
                    news.wait(0.5)  # signals are handled in between, even during silence
                if not waiting:
                    break
                item = waiting.popleft()
            yield item
    finally:
        closed.set()
    if problem:
        raise problem[0]


def _overtakes(item: Item, other: Item) -> bool:
    """Whether ``item`` makes ``other`` obsolete."""
    if not (isinstance(item, Update) and isinstance(other, Update)):
        return False
    return item.utterance == other.utterance and not other.final
