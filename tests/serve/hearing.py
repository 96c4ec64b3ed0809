"""Recognisers of a server for tests, in processes of their own as the real ones are."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from redraft.speech.audio import RATE, Samples
from redraft.speech.recogniser import Recognised
from redraft.speech.worker import work
from tests.speech.recognisers import Scripted

ROOT = Path(__file__).parents[2]
#: Says "we saw her duck" in every two seconds of audio.
SENTENCE = "we saw her duck"


def command(*options: str) -> Callable[[str], Sequence[str]]:
    """The command of a scripted recogniser's process, whatever the language."""
    place = f"import sys; sys.path[:0] = [{str(ROOT / 'src')!r}, {str(ROOT)!r}]; from {__name__} import main; main()"
    return lambda language: [sys.executable, "-c", place, *options]


class Slow(Scripted):
    """Takes longer than speech to recognise it, as long as a file is there."""

    def __init__(self, while_exists: Path) -> None:
        super().__init__(4, sentence=SENTENCE)
        self._while = while_exists

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        while self._while.exists():
            time.sleep(0.02)
        yield from super().hear(samples)


class Crashing(Scripted):
    """Ends its process after a while, as a segmentation fault does."""

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        yield from super().hear(samples)
        if self.recorded > 2.7:
            os.kill(os.getpid(), 9)


def main() -> None:
    """Recognise standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dies-after", type=float)
    parser.add_argument("--slow", type=Path)
    parser.add_argument("--crashes", action="store_true")
    parser.add_argument("--fails", action="store_true")
    parser.add_argument("--babbles", action="store_true")
    parser.add_argument("--sentence", default=SENTENCE)
    wanted = parser.parse_args()
    if wanted.babbles:
        print("loading the model", flush=True)

    def opened() -> Scripted:
        if wanted.fails:
            raise RuntimeError("the model is broken. Fetch it again")
        if wanted.slow:
            return Slow(wanted.slow)
        kind = Crashing if wanted.crashes else Scripted
        return kind(4, dies_after=wanted.dies_after, sentence=wanted.sentence)

    sys.exit(work(sys.stdin.buffer, sys.stdout.buffer, opened))


def pcm(seconds: float) -> bytes:
    """Samples of so many seconds."""
    return bytes(2 * round(seconds * RATE))
