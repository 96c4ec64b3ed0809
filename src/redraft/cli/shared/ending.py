"""How a stream ends before its input does: the first signal ends the input, a second one ends the program.

The handlers are Python's, since those of the event loop cannot run while a write waits for its reader: a second signal
then still raises its exception out of that write.  The loop only wakes up for signals, whichever thread gets them.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import select
import signal
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

from redraft import deadlines
from redraft.cli.shared.notice import notice
from redraft.interrupt import end_process_after

_T = TypeVar("_T")

#: SIGHUP means that the terminal was closed.  Signals that the system does not have are left out.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = tuple(signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__)
#: Maximum bytes to read from a pipe after the end was asked for: more than a pipe holds.
_HELD = 1 << 20


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread by a second signal."""


class Ending:
    """The end of one stream's input, which is asked for by `stop`.

    Attributes:
        asked: whether the input is to end.
        endless: whether the input never ends by itself, like a microphone's, so that ending it is no interruption.
        drains: whether the input is a pipe that is read until it is empty.
        live: whether the input comes as it is spoken: partial updates are skipped if translation is slower.
        signal: the newest signal.
    """

    def __init__(self) -> None:
        self.asked = self.endless = self.drains = self.live = False
        self.signal: int | None = None
        self._first = 0.0
        #: Ends the process after a second signal, if something hangs.
        self._last: threading.Timer | None = None
        #: The signals that are handled.
        self._ours: tuple[signal.Signals, ...] = ()
        self._stops: list[Callable[[], object]] = []
        # Its other end becomes readable once the end is asked for; events cannot be waited for along with a pipe.
        self._asking, self._waiting = socket.socketpair()

    def __enter__(self) -> Ending:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._asking.close()
        self._waiting.close()

    def fileno(self) -> int:
        """Return a descriptor that is readable once the end was asked for."""
        return self._waiting.fileno()

    # For inputs

    def when_asked(self, stop: Callable[[], object]) -> None:
        """Have a function called when the end is asked for."""
        self._stops.append(stop)

    def until(self, items: Iterable[_T]) -> Iterator[_T]:
        """Yield the items that come before the end is asked for, or all of an input that is read until it is empty."""
        for item in items:
            if self.asked and not self.drains:
                return
            yield item

    def sleep(self, seconds: float) -> None:
        """Sleep, but only until the end is asked for."""
        if not self.asked:
            select.select([self], [], [], seconds)

    def pipe(self, number: int, *, drained: bool) -> io.BufferedReader:
        """Return a reader of a descriptor whose data ends when that is asked for, even while it waits for more.

        Args:
            number: the descriptor, which stays open.
            drained: whether what is in the pipe by then is still read; such a pipe is live.
        """
        if drained:
            self.drains = self.live = True
        return io.BufferedReader(_Pipe(number, self, drained=drained))

    # For the command

    def stop(self) -> None:
        """Ask for the end."""
        if self.asked:
            return
        self.asked = True
        self._asking.send(b"!")
        for stop in self._stops:
            stop()

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Let signals ask for the end; a second one raises `Interrupted` in the block, a third one ends the process.

        After the second one, the block may take as long as a pass of the model.

        Signals that something else handles or ignores are left alone, as are threads other than the main one.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.getsignal(each) for each in SIGNALS}
        self._ours = tuple(each for each in SIGNALS if before[each] in (signal.SIG_DFL, signal.default_int_handler))
        self._handled()
        try:
            yield
        finally:
            if self._last is not None:
                self._last.cancel()
            for number in self._ours:
                signal.signal(number, before[number])

    @asynccontextmanager
    async def in_loop(self) -> AsyncIterator[None]:
        """Let the running loop do what the first signal asks for."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # on Windows, where loops see signals anyway
            for number in self._ours:  # wakes the loop up, whichever thread gets the signal
                loop.add_signal_handler(number, bool)
        self._handled()
        try:
            yield
        finally:
            with suppress(NotImplementedError):
                for number in self._ours:
                    loop.remove_signal_handler(number)
            self._handled()

    def _handled(self) -> None:
        for number in self._ours:
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now, hangup = time.monotonic(), number == getattr(signal, "SIGHUP", None)
        if self.signal is None:
            self.signal, self._first = number, now
            if hangup:
                _leave_closed_terminal()
            try:
                asyncio.get_running_loop().call_soon_threadsafe(self._stop_in_loop)
            except RuntimeError:  # there is none
                self.stop()
        # A closed terminal sends SIGHUP several times, through the shell and from the system.
        elif now - self._first <= deadlines.TOGETHER or hangup:
            return
        elif self._last is None:
            self.signal, self._first = number, now
            self._last = end_process_after(deadlines.PASS, 128 + number)
            raise Interrupted
        else:
            os._exit(128 + number)

    def _stop_in_loop(self) -> None:
        self.stop()
        again = "press Ctrl-C again to stop" if self.signal == signal.SIGINT else "a second signal stops"
        with suppress(OSError):
            notice(f"stopping, and finishing what was recognised; {again} at once")


class _Pipe(io.RawIOBase):
    """A descriptor whose data ends when `Ending` says so."""

    def __init__(self, number: int, ending: Ending, *, drained: bool) -> None:
        self._number, self._ending, self._left = number, ending, _HELD if drained else 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._ready():
            return 0
        ending = self._ending.asked
        if ending and self._left <= 0:
            return 0
        try:
            data = os.read(self._number, len(buffer))
        except OSError as error:
            if error.errno == errno.EIO:  # a terminal that has been closed
                return 0
            raise
        self._left -= len(data) if ending else 0
        buffer[: len(data)] = data
        return len(data)

    def _ready(self) -> bool:
        """Wait for data or the end; return whether there is data."""
        # Otherwise a thread would still wait in `read` when the program ends, which Python takes for a fatal error.
        # Windows can wait for sockets only.
        if os.name != "posix":
            return True
        return self._number in select.select([self._number, self._ending.fileno()], [], [])[0]


def _leave_closed_terminal() -> None:
    """Drop what is written to a terminal that is gone, so that the rest can still go elsewhere."""
    for number in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):  # or it is /dev/null itself
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
