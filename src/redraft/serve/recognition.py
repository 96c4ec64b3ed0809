"""A recogniser at work on one stream of audio, in a process of its own.

Recognisers compute under the interpreter's lock, PocketSphinx for 0.15 s at a time, which would hold up the event loop
and every session's captions; and one that crashes must not take the server along.
"""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.errors import InputError

#: The longest line of a recogniser's process, in bytes.
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """What a recogniser says.

    Attributes:
        item: an update or a failure; None if it only says how far it is.
        samples: how many it has recognised.
        cpu: the processor time that it has taken, in seconds.
    """

    item: Item | None
    samples: int
    cpu: float


class Recognition:
    """A process with a recogniser; it is started when it is listened to.

    Args:
        command: the process, see `redraft.speech.worker`.
        details: whether what it writes to standard error may go to the server's: there may be text in it.
    """

    def __init__(self, command: Sequence[str], *, details: bool = False) -> None:
        self._command, self._details = command, details
        self._process: Process | None = None
        self._unsent = bytearray()
        self._finished = False
        #: Whether it was ended: what it says after that does not count.
        self.killed = False

    def feed(self, samples: bytes) -> None:
        """Have samples recognised."""
        self._unsent += samples
        self._send()

    def finish(self) -> None:
        """No more audio will come: what is still open is ended, and the process with it."""
        self._finished = True
        self._send()

    def kill(self) -> None:
        """End the process at once."""
        self.killed = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def progress(self) -> AsyncIterator[Progress]:
        """What comes of it, until the process has ended."""
        try:
            # A session of its own, so that Ctrl-C in a terminal lets it recognise what is left.
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=None if self._details else DEVNULL,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            yield Progress(Failure(f"the recogniser cannot be started: {error.strerror}"), 0, 0.0)
            return
        try:
            async for each in self._lines(self._process):
                yield each
        finally:
            self.kill()
            await self._process.wait()

    async def _lines(self, process: Process) -> AsyncIterator[Progress]:
        assert process.stdout is not None  # noqa: S101  # for the type checker
        if self.killed:
            self.kill()
        self._send()
        last = Progress(None, 0, 0.0)
        try:
            while line := await process.stdout.readline():
                yield (last := _read(line))
        except (ValueError, KeyError, TypeError, InputError):  # too long a line, or none of ours
            yield Progress(Failure("the recogniser's process sent an invalid message"), last.samples, last.cpu)
            return
        status = await process.wait()
        if status and not self.killed and not isinstance(last.item, Failure):
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            yield Progress(Failure(f"the recogniser's process ended with {how}"), last.samples, last.cpu)

    def _send(self) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        if self._unsent:
            process.stdin.write(bytes(self._unsent))
            self._unsent.clear()
        if self._finished:
            process.stdin.close()


def _read(line: bytes) -> Progress:
    """A line of the process."""
    found = json.loads(line)
    samples, cpu = int(found.pop("samples")), float(found.pop("cpu"))
    kind = found.pop("type")
    if kind == "update":
        return Progress(Update(**found), samples, cpu)
    return Progress(Failure(found["message"]) if kind == "error" else None, samples, cpu)
