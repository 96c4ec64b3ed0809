"""A recogniser in a separate process: raw samples on standard input, JSON lines on standard output.

    python -m redraft.speech.worker '["moonshine", "en", 0.5, null]' < talk.pcm

The argument has the parameters of `redraft.speech.registry.open_recogniser`.  Each line is a `Progress`.  The first one
comes once the recogniser is open, or cannot be opened.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.errors import InputError
from redraft.speech.audio import RATE, Samples, pcm_blocks
from redraft.speech.recogniser import Recogniser, reason, transcribe
from redraft.speech.registry import open_recogniser

#: Seconds of audio between progress reports if nothing was recognised.
_REPORT = 0.5


@dataclass(frozen=True, slots=True)
class Progress:
    """A message of a recogniser.

    Attributes:
        samples: number of samples recognised so far.
        cpu: CPU seconds used so far.
        item: an update or a failure; None if it only reports progress.
        kind: type of the exception that ended the recognition, or kept the recogniser from being opened.
    """

    samples: int = 0
    cpu: float = 0.0
    item: Item | None = None
    kind: str | None = None

    def line(self) -> bytes:
        """Return it as a line of JSON."""
        item = self.item and {type(self.item).__name__: asdict(self.item)}
        return json.dumps([self.samples, self.cpu, item, self.kind]).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Progress:
        """Parse a line.

        Raises:
            ValueError: it is invalid.
        """
        try:
            samples, cpu, item, kind = json.loads(line)
            for name, fields in (item or {}).items():
                item = {"Update": Update, "Failure": Failure}[name](**fields)
            return cls(int(samples), float(cpu), item, kind)
        except (KeyError, TypeError, InputError) as error:
            raise ValueError("invalid message") from error


class Worker:
    """Recognises one stream of audio.

    Args:
        audio: signed 16-bit little-endian samples, mono at 16 kHz.
    """

    def __init__(self, audio: BinaryIO, out: BinaryIO) -> None:
        self._audio, self._out = audio, out
        self._samples = self._reported = 0

    def run(self, opened: Callable[[], Recogniser]) -> int:
        """Recognise until the audio ends; return the exit status."""
        try:
            recogniser = opened()
        except Exception as error:
            self._report(Failure(reason(error)), type(error).__name__)
            return 1
        self._report()
        for item in transcribe(self._noted(pcm_blocks(self._audio, checked=True)), recogniser):
            if isinstance(item, Update) or self._samples:  # without audio, it is no failure that there was none
                self._report(item)
        self._report()
        return 0

    def _noted(self, blocks: Iterable[Samples]) -> Iterator[Samples]:
        """Yield the blocks; a request for the next one means that the last one has been recognised."""
        for block in blocks:
            self._samples += len(block)
            yield block
            if self._samples - self._reported >= _REPORT * RATE:
                self._report()

    def _report(self, item: Item | None = None, kind: str | None = None) -> None:
        self._reported = self._samples
        self._out.write(Progress(self._samples, round(time.process_time(), 3), item, kind).line())
        self._out.flush()


def command(recogniser: str, language: str, pause: float, punctuation: str | None) -> list[str]:
    """Return the command line for a recogniser; arguments as for `open_recogniser`."""
    return [sys.executable, "-m", __name__, json.dumps([recogniser, language, pause, punctuation])]


def ended(status: int) -> str:
    """Say how a process has ended, given its exit status."""
    return f"ended with signal {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def main(wanted: str) -> int:
    """Recognise standard input; return the exit status."""
    atexit.register(gc.freeze)  # as in `redraft.cli.main`: its end is waited for
    try:
        # Keep output of libraries out of the JSON lines.
        with os.fdopen(os.dup(1), "wb") as out:
            os.dup2(2, 1)
            return Worker(sys.stdin.buffer, out).run(lambda: open_recogniser(*json.loads(wanted)))
    except BrokenPipeError:  # the reader has gone; closing writes what is still buffered
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
