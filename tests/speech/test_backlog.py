"""A transcript that keeps up with its speaker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from redraft.captions.events import Update
from redraft.speech.backlog import Backlog
from redraft.speech.recogniser import transcribe
from tests.speech.recognisers import Scripted, silence


def test_newest_drops_what_is_overtaken() -> None:
    done = threading.Event()

    def all_at_once() -> Iterator[Any]:
        yield from transcribe(silence(10.1), Scripted(words=5))
        done.set()

    items = iter(Backlog(all_at_once()))
    first = next(items)
    assert done.wait(20)
    rest = [item for item in items if isinstance(item, Update)]
    assert isinstance(first, Update) and sum(item.final for item in rest) + first.final == 4
    assert len(rest) <= 5  # of what waited, only finals were left

    def broken() -> Iterator[Any]:
        yield first
        raise ValueError("torn")

    items = iter(Backlog(broken()))
    assert next(items) == first
    with pytest.raises(ValueError, match="torn"):
        next(items)
