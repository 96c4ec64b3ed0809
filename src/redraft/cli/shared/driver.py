"""The loop of commands that make captions, and what is named if it ends too early."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from redraft import deadlines
from redraft.captions.events import Event, Failure, Update
from redraft.captions.formats.read import Item
from redraft.captions.formats.write import Writer, failure_line
from redraft.cli.shared.ending import Ending, Interrupted
from redraft.errors import InputError
from redraft.speech.backlog import Backlog
from redraft.tasks import beside

if TYPE_CHECKING:
    from redraft.async_translator import AsyncTranslator
    from redraft.client import Client


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
    backlog = Backlog(_read(items, ending, timed=timed and ending.live), languages, live=ending.live)
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


def _read(
    items: Iterable[Item], ending: Ending, *, timed: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Item]:
    """Pass on the items, if ``timed`` with the time at which they came, where they have none.

    If the end is asked for before anything is recognised, no failure is passed on either.
    """
    begun, opened = False, clock()
    for item in items:
        if isinstance(item, Update):
            begun = True
            if timed and item.time is None:
                item = replace(item, time=round(clock() - opened, 3))
        if begun or not ending.asked:
            yield item


@dataclass
class Driver:
    """Translates a stream.

    Args:
        translator: translates it, here or on a server.
        seen: called with each event once it is written.
        ending: the end of the updates, which is asked for if an event cannot be written.
        viewers: whether others see the captions, so that they are also made when the output is closed.
    """

    translator: AsyncTranslator | Client
    writer: Writer
    seen: Callable[[Event], object]
    ending: Ending
    viewers: bool = False
    _whole: bool = field(default=True, init=False)
    _closed: OSError | None = field(default=None, init=False)
    _translating: asyncio.Task[None] | None = field(default=None, init=False)

    def run(self, items: Backlog) -> bool:
        """Translate the items; return whether everything succeeded.

        Raises:
            RedraftError: the translator cannot go on.
            OSError: the output cannot be written; if there are viewers, they got everything.
            Interrupted: a second signal has come.
        """
        return asyncio.run(self._run(items))

    async def _run(self, items: Backlog) -> bool:
        asyncio.get_running_loop().set_exception_handler(_unless_interrupted)
        try:
            async with self.ending.in_loop(), self.translator:
                _watch_reader(self._unread)
                await self._translate(items)
        except asyncio.CancelledError:
            if self._closed is None:
                raise
        if self._closed is not None:
            raise self._closed
        return self._whole

    async def _translate(self, items: Backlog) -> None:
        self._translating = asyncio.current_task()
        async with beside(self._send(items)) as (sending,):
            async for event in self.translator:
                self._write(event)
            await sending
        self._translating = None

    async def _send(self, items: Backlog) -> None:
        try:
            async for item in items:
                if isinstance(item, Failure):
                    self._write(item)
                    continue
                try:
                    await self.translator.send(item)
                except InputError as error:
                    self._write(Failure(str(error), None, item.utterance, item.seq))
        finally:
            await self.translator.end()

    def _write(self, event: Event) -> None:
        # The error message may be lost with a connection, but the truncated final caption is not.
        self._whole = self._whole and not (isinstance(event, Failure) or (event.final and event.cut))
        if self._closed is not None:
            return
        try:
            self.writer.write(event)
        except OSError as error:
            self._close(error)
            return
        self.seen(event)

    def _unread(self) -> None:
        if self._closed is None:
            self._close(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

    def _close(self, error: OSError) -> None:
        """Write no more; if there are viewers, what has been recognised is finished for them."""
        self._closed = error
        self.ending.stop()
        if not self.viewers and self._translating is not None:
            self._translating.cancel()


def _watch_reader(gone: Callable[[], object]) -> None:
    """Call a function when the reader of standard output has gone, if that is a pipe, even while nothing is written."""
    loop = asyncio.get_running_loop()
    with suppress(OSError, ValueError, AttributeError):  # of programs that call commands, it may be anything
        number = sys.stdout.fileno()

        def readable() -> None:  # as a pipe's writing end is once its other end is closed
            loop.remove_reader(number)
            gone()

        if os.name == "posix" and stat.S_ISFIFO(os.fstat(number).st_mode):
            loop.add_reader(number, readable)


def _unless_interrupted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log problems of tasks, unless a signal has ended them."""
    if not isinstance(context.get("exception"), Interrupted):
        loop.default_exception_handler(context)
