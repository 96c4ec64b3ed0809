"""A recogniser for one stream of audio, in a separate process.

Some recognisers hold the interpreter lock, which would block the event loop and the captions of all sessions; streams
of others influence each other within a process (`redraft.speech.moonshine`); and a crash of one must not crash the
server.
"""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.errors import InputError

#: Maximum length in bytes of a line from a recogniser's process.
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """A message of a recogniser.

    Attributes:
        item: an update or a failure; None if it only reports progress.
        samples: number of samples recognised so far.
        cpu: CPU seconds used so far.
    """

    item: Item | None
    samples: int
    cpu: float


class RecogniserProcess:
    """A process with a recogniser; iterating over `progress` starts it.

    Args:
        command: command line of the process, see `redraft.speech.worker`.
        details: whether to pass on its standard error, which may contain transcript text.
    """

    def __init__(self, command: Sequence[str], *, details: bool = False) -> None:
        self._command, self._details = command, details
        self._process: Process | None = None
        self._unsent = bytearray()
        self._finished = False
        #: Whether it was killed; its later output is ignored.
        self.killed = False

    def feed(self, samples: bytes) -> None:
        """Send samples to the recogniser."""
        self._unsent += samples
        self._send()

    def finish(self) -> None:
        """End the audio: the current utterance is finished, then the process ends."""
        self._finished = True
        self._send()

    def kill(self) -> None:
        """Kill the process."""
        self.killed = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def progress(self) -> AsyncGenerator[Progress, None]:
        """Yield the process's messages until it ends; closing the generator kills it."""
        try:
            # In a separate session, so that after Ctrl-C in a terminal it can recognise the rest.
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

    async def _lines(self, process: Process) -> AsyncGenerator[Progress, None]:
        assert process.stdout is not None  # noqa: S101  # for the type checker
        if self.killed:
            self.kill()
        self._send()
        last = Progress(None, 0, 0.0)
        try:
            while line := await process.stdout.readline():
                yield (last := _read(line))
        except (ValueError, KeyError, TypeError, InputError):  # too long, or invalid
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
    """Parse a line from the process."""
    found = json.loads(line)
    samples, cpu = int(found.pop("samples")), float(found.pop("cpu"))
    kind = found.pop("type")
    if kind == "update":
        return Progress(Update(**found), samples, cpu)
    return Progress(Failure(found["message"]) if kind == "error" else None, samples, cpu)
