"""A recogniser in a separate process: raw samples on standard input, JSON lines on standard output.

    python -m redraft.speech.worker --recogniser moonshine --language en < talk.pcm

Each line is an object with a ``type``: "ready", "update" with the fields of an `redraft.captions.events.Update`, or
"error" with a ``message``.  All have ``samples``, the number of samples recognised so far, and ``cpu``, the CPU seconds
used.  The first line is "ready" once the recogniser is open, or an error whose ``kind`` is the type of the exception.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import BinaryIO

from redraft.captions.events import Update
from redraft.speech.audio import RATE, Samples, pcm_blocks
from redraft.speech.endpoint import PAUSE
from redraft.speech.recogniser import Recogniser, reason, transcribe
from redraft.speech.registry import open_recogniser

#: Seconds of audio between progress reports if nothing was recognised.
_REPORT = 0.5


class Worker:
    """Recognises one stream of audio.

    Args:
        audio: signed 16-bit little-endian samples, mono at 16 kHz.
        out: where to write the lines.
    """

    def __init__(self, audio: BinaryIO, out: BinaryIO) -> None:
        self._audio, self._out = audio, out
        self._samples = self._reported = 0

    def run(self, opened: Callable[[], Recogniser]) -> int:
        """Recognise until the audio ends; return the exit status."""
        try:
            recogniser = opened()
        except Exception as error:
            self._report("error", message=reason(error), kind=type(error).__name__)
            return 1
        self._report("ready")
        for item in transcribe(self._noted(pcm_blocks(self._audio, checked=True)), recogniser):
            if isinstance(item, Update):
                self._report("update", **asdict(item))
            elif self._samples:  # without audio this is no error
                self._report("error", message=item.message)
        self._report("ready")
        return 0

    def _noted(self, blocks: Iterable[Samples]) -> Iterator[Samples]:
        """Yield the blocks; a request for the next one means that the last one has been recognised."""
        for block in blocks:
            self._samples += len(block)
            yield block
            if self._samples - self._reported >= _REPORT * RATE:
                self._report("ready")

    def _report(self, type: str, **fields: object) -> None:
        self._reported = self._samples
        message = {"type": type, **fields, "samples": self._samples, "cpu": round(time.process_time(), 3)}
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()


def arguments(recogniser: str, language: str, pause: float, punctuation: str | None) -> list[str]:
    """Return the command line for a recogniser, see `open_recogniser`."""
    made = [sys.executable, "-m", __name__, "--recogniser", recogniser, "--language", language, "--pause", str(pause)]
    return made if punctuation is None else [*made, "--punctuation", punctuation]


def main(given: Sequence[str] | None = None) -> int:
    """Recognise standard input; return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {__name__}", description="Recognise raw audio.")
    parser.add_argument("--recogniser", required=True)
    parser.add_argument("--language", default="en")
    parser.add_argument("--pause", type=float, default=PAUSE)
    parser.add_argument("--punctuation")
    wanted = parser.parse_args(given)
    atexit.register(gc.freeze)  # as in `redraft.cli.main`: its end is waited for
    try:
        # Keep output of libraries out of the JSON lines.
        with os.fdopen(os.dup(1), "wb") as out:
            os.dup2(2, 1)
            return Worker(sys.stdin.buffer, out).run(
                lambda: open_recogniser(wanted.recogniser, wanted.language, wanted.pause, wanted.punctuation)
            )
    except BrokenPipeError:  # the reader has gone; closing writes what is still buffered
        return 1


if __name__ == "__main__":
    sys.exit(main())
