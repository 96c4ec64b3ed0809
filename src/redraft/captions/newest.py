"""What waits to be translated: of each utterance only the newest update, all final ones, in order.

Commands, the engine and alignatt-mt queue updates; here alone is said which of them wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T")


class Newest(OrderedDict[Hashable, T]):
    """Items that wait, the first to come first.  The partial one of an utterance has its name as the key."""

    def put(self, item: T, utterance: Hashable, *, final: bool) -> T | None:
        """Add an item at the end; return the partial one of its utterance, which it replaces, or None."""
        older = self.pop(utterance, None)
        self[object() if final else utterance] = item
        return older

    def put_back(self, item: T, utterance: Hashable, *, final: bool) -> T | None:
        """Put an item that was taken at the front again; if a newer one replaces it, return that one instead."""
        if not final and utterance in self:
            return self[utterance]
        self[key := object() if final else utterance] = item
        self.move_to_end(key, last=False)
        return None

    def take(self) -> T:
        """Remove and return the first item.  Raises `KeyError` if nothing waits."""
        return self.popitem(last=False)[1]
