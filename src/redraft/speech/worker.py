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
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import BinaryIO

from redraft.captions.events import Failure
from redraft.speech.audio import RATE, Samples, pcm_blocks
from redraft.speech.recogniser import Hypothesis, Recognised, Recogniser, Transcript, reason
from redraft.speech.registry import open_recogniser

#: Seconds of audio between progress reports if nothing was recognised.
_REPORT = 0.5


@dataclass(frozen=True, slots=True)
class Progress:
    """A message of a recogniser.

    Attributes:
        samples: number of samples recognised so far.
        cpu: CPU seconds used since the message before.
        item: a hypothesis or a failure; None if it only reports progress.
        kind: type of the exception that ended the recognition, or kept the recogniser from being opened.
    """

    samples: int = 0
    cpu: float = 0.0
    item: Hypothesis | Failure | None = None
    kind: str | None = None

    @property
    def recognised(self) -> list[Recognised]:
        """The item, if there is one, and how many seconds are recognised."""
        return [*([] if self.item is None else [self.item]), self.samples / RATE]

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
                item = {"Hypothesis": Hypothesis, "Failure": Failure}[name](**fields)
            return cls(int(samples), float(cpu), item, kind)
        except (KeyError, TypeError) as error:
            raise ValueError("invalid message") from error


def work(audio: BinaryIO, out: BinaryIO, opened: Callable[[], Recogniser]) -> int:
    """Recognise one stream of audio until it ends; return the exit status.

    Args:
        audio: signed 16-bit little-endian samples, mono at 16 kHz.
    """
    samples, reported, cpu, transcript = 0, 0, 0.0, Transcript()

    def report(item: Hypothesis | Failure | None = None, kind: str | None = None) -> None:
        nonlocal reported, cpu
        before, reported, cpu = cpu, samples, time.process_time()
        out.write(Progress(samples, round(cpu - before, 3), item, kind).line())
        out.flush()

    def heard() -> Iterator[Samples]:
        nonlocal samples
        for block in pcm_blocks(audio, checked=True):
            samples += len(block)
            yield block
            if samples - reported >= _REPORT * RATE:
                report()

    try:
        recogniser = opened()
    except Exception as error:
        report(Failure(reason(error)), type(error).__name__)
        return 1
    report()
    try:
        with closing(recogniser(heard())) as recognised:
            for item in recognised:
                if isinstance(item, Hypothesis):
                    transcript.update(item)  # refuses what is no update
                if not isinstance(item, int | float):
                    report(item)
    except Exception as error:
        death = Failure(f"the recogniser stopped after {samples / RATE:.1f} s of audio: {reason(error)}")
        report(death, type(error).__name__)
    report()
    return 0


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
            return work(sys.stdin.buffer, out, lambda: open_recogniser(*json.loads(wanted)))
    except BrokenPipeError:  # the reader has gone; closing writes what is still buffered
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
