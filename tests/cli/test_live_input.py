"""A pipe is live if it has to be waited for, and only then are updates passed over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from redraft.captions.events import Failure, Update
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.uncaptioned import _timed

LINES = [f"{number}\n".encode() for number in range(6)]


@pytest.fixture
def ending() -> Iterator[Ending]:
    with Ending() as made:
        yield made


def test_recorded_pipe(ending: Ending) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"".join(LINES))
    os.close(writing)
    with closing(os.fdopen(reading)):
        assert list(ending.pipe(reading, drained=True)) == LINES
        assert not ending.live


@pytest.mark.skipif(os.name != "posix", reason="Windows can wait for sockets only")
def test_live_pipe(ending: Ending) -> None:
    reading, writing = os.pipe()

    def speak() -> None:
        for line in LINES:
            time.sleep(0.15)
            os.write(writing, line)
        os.close(writing)

    speaker = threading.Thread(target=speak)
    with closing(os.fdopen(reading)):
        source = ending.pipe(reading, drained=True)
        speaker.start()
        assert source.readline() == LINES[0]
        assert not ending.live  # it may only have started slowly
        assert list(source) == LINES[1:]
        assert ending.live
    speaker.join()


def test_late_start(ending: Ending) -> None:
    """A program that has to start first and then writes everything at once is not live."""
    reading, writing = os.pipe()

    def write() -> None:
        os.write(writing, b"".join(LINES))
        os.close(writing)

    starting = threading.Timer(0.5, write)
    with closing(os.fdopen(reading)):
        starting.start()
        assert list(ending.pipe(reading, drained=True)) == LINES
        assert not ending.live
    starting.join()


def test_live_input_is_timed(ending: Ending) -> None:
    """Its subtitles have the times at which it came; a file has none."""
    items: list[Update | Failure] = [
        Update("1", 0, "We"),
        Update("1", 1, "We saw.", True, 9.0),
        Update("2", 0, "Yes.", True),
        Failure("no"),
    ]
    now = iter([100.0, 101.0, 102.5])
    assert list(_timed(items, ending, lambda: 0.0)) == items
    ending.waited(5.0)
    made = list(_timed(items, ending, lambda: next(now)))
    assert [each.time for each in made if isinstance(each, Update)] == [1.0, 9.0, 2.5]
