"""Text that has been recognised but has no final caption yet, which is named if a stream ends too early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import click

from redraft import deadlines
from redraft.captions.events import Update
from redraft.captions.formats.read import Item
from redraft.captions.formats.write import failure_line
from redraft.cli.shared.ending import Ending, Interrupted
from redraft.speech.backlog import Backlog

#: Seconds for reading the rest of an input after a failure: of a pipe, which ends at once, and of others.
_DRAINED, _LAST = 10.0, 0.5


@contextmanager
def accounted(
    items: Iterable[Item], ending: Ending, languages: Sequence[str], *, timed: bool = False
) -> Iterator[Backlog]:
    """Read items on a thread; if the block fails, name what has no caption on standard error.

    Args:
        ending: asks for the end of the items.
        timed: whether live updates without a time get that at which they came, in seconds from now.

    Raises:
        Exit: a second signal has ended the block.
    """
    items = _timed(items) if timed and ending.live else items
    backlog = Backlog(_begun(items, ending), languages, live=ending.live)
    ending.when_asked(backlog.hurry)
    try:
        yield backlog
    except BaseException as error:
        ending.stop()
        backlog.wait(_DRAINED if ending.drains else _LAST)
        with suppress(OSError):
            for failure in backlog.failures():
                click.echo(failure_line(failure), err=True)
        if isinstance(error, Interrupted) and ending.signal is not None:
            raise click.exceptions.Exit(128 + ending.signal) from None
        raise
    finally:
        ending.stop()
        backlog.close()
        backlog.wait(deadlines.TOGETHER)


def _begun(items: Iterable[Item], ending: Ending) -> Iterator[Item]:
    """Pass on the items; if the end is asked for before anything is recognised, no failure either."""
    begun = False
    for item in items:
        begun = begun or isinstance(item, Update)
        if begun or not ending.asked:
            yield item


def _timed(items: Iterable[Item], clock: Callable[[], float] = time.monotonic) -> Iterator[Item]:
    """Time what has no time by the clock."""
    opened = clock()
    for item in items:
        if isinstance(item, Update) and item.time is None:
            yield replace(item, time=round(clock() - opened, 3))
        else:
            yield item
