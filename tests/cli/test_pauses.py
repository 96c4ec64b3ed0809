"""Words that are held back are translated at pauses of live input, on a timer's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from redraft.captions.events import Caption, Event, Update
from redraft.cli.shared import stream

UPDATE = Update("1", 0, "we saw")


class Held:
    """A translator whose captions come from `rest` only."""

    def translate(self, update: Update) -> list[Event]:
        return []

    def rest(self) -> list[Event]:
        return [Caption("1", 0, "de", "wir sahen")]


class Closed:
    """A writer to a pipe whose reader has gone."""

    def __init__(self) -> None:
        self.tried = threading.Event()

    def write(self, event: Event) -> None:
        self.tried.set()
        raise BrokenPipeError


def test_error_in_last_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PAUSE", 0.0)
    writer: Any = Closed()
    translator: Any = Held()

    def items() -> Iterator[Update]:
        yield UPDATE
        assert writer.tried.wait(20)
        translator.rest = list  # nothing is left to fail

    with pytest.raises(BrokenPipeError):
        stream.run(items(), translator, writer, live=True)
