"""A program in a pseudo-terminal, so that it believes that a person looks on."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from types import TracebackType

#: Seconds that anything may take.
PATIENCE = 60.0


def program(*arguments: str) -> list[str]:
    """The command line as a process of its own."""
    return [sys.executable, "-m", "redraft", *arguments]


class Terminal:
    """A terminal of so many columns and rows in which a command runs; ended with the block.

    Attributes:
        output: all that the command has written so far.
    """

    def __init__(self, columns: int, rows: int, command: Sequence[str]) -> None:
        self.output, self._data = "", b""
        self._status: int | None = None
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it, and all that they start
            os.execve(command[0], [*command], {**os.environ, "TERM": "xterm-256color"})
        self.resize(columns, rows)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._file)

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size."""
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._file, text.encode())

    def read(self, seconds: float) -> bool:
        """Take what is written within some time; whether more may come."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._file], [], [], left)[0]:
                try:
                    data = os.read(self._file, 1 << 16)
                except OSError:  # the other end is closed
                    return False
                if not data:
                    return False
                self._data += data
                self.output = self._data.decode(errors="replace")
        return True

    def wait_for(self, text: str, start: int = 0) -> None:
        """Read until some text has come, behind a place in the output."""
        end, more = time.monotonic() + PATIENCE, True
        while text not in self.output[start:]:
            assert more and time.monotonic() < end, self.output[-2000:]
            more = self.read(0.05)

    def ended(self) -> int:
        """The exit status, once it has ended; minus the signal, if one has ended it."""
        end = time.monotonic() + PATIENCE
        while self.read(0.05):
            assert time.monotonic() < end, self.output[-2000:]
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status
