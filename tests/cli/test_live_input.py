"""A pipe is live if it has to be waited for, and only then are updates passed over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from redraft.cli.shared.ending import Ending

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
