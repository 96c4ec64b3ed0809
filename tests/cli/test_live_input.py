"""A pipe of updates is live, so that they are passed over and timed; nothing else is."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from redraft.captions.events import Failure, Update
from redraft.cli.shared.driver import _read
from redraft.cli.shared.ending import Ending

LINES = [f"{number}\n".encode() for number in range(6)]


@pytest.mark.parametrize("drained", [True, False])
def test_pipe(drained: bool) -> None:
    """Unless it has plain text, of which nothing is read once the end was asked for."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(LINES))
    os.close(writing)
    with Ending() as ending, closing(os.fdopen(reading)):
        assert not ending.live
        assert list(ending.pipe(reading, drained=drained)) == LINES
        assert ending.live is drained


def test_live_input_is_timed() -> None:
    """Its subtitles have the times at which it came."""
    items: list[Update | Failure] = [
        Update("1", 0, "We"),
        Update("1", 1, "We saw.", True, 9.0),
        Update("2", 0, "Yes.", True),
        Failure("no"),
    ]
    now = iter([100.0, 101.0, 102.5])
    with Ending() as ending:
        made = list(_read(items, ending, timed=True, clock=lambda: next(now)))
    assert [each.time for each in made if isinstance(each, Update)] == [1.0, 9.0, 2.5]
