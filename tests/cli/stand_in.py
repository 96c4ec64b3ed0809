"""The command line with a recogniser that needs no model, and with a model that is slow on request.

    python -m tests.cli.stand_in SECONDS LOG COMMAND...

Every pass takes so many seconds longer.  What the recogniser recognises is appended to the file LOG, a line each:
the number of the utterance, a tab, and its text so far.  With the variable STAND_IN_SOUND there is a microphone or,
for "system", what the computer plays; a SIGUSR1 takes it away.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from redraft.backends.llama_context import LlamaContext
from redraft.cli import main
from redraft.speech import isolated, registry
from redraft.speech.audio import Samples
from redraft.speech.recogniser import Hypothesis, Recognised
from tests.cli.test_microphone import Punctual
from tests.speech.recognisers import Scripted

#: Names the device that records, if there is one.
SOUND = "STAND_IN_SOUND"


class Logged(Scripted):
    """Writes what it recognises to a file."""

    def __init__(self, log: Path) -> None:
        super().__init__(words=4)
        self._log = log

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        for found in super().hear(samples):
            yield self._logged(found)

    def finish(self) -> Iterator[Recognised]:
        for found in super().finish():
            yield self._logged(found)

    def _logged(self, found: Recognised) -> Recognised:
        assert isinstance(found, Hypothesis)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{found.start}\t{found.text}\n")
        return found


def slow_down(seconds: float) -> None:
    """Let every pass of llama.cpp take longer."""
    decode = LlamaContext.decode

    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(seconds)
        return decode(*arguments, **options)

    LlamaContext.decode = slowly  # type: ignore[method-assign]


def plug_in(source: str) -> None:
    """Let a device record, until a signal takes it away."""
    device = Punctual(("Loudspeaker [Loopback]",) if source == "system" else ("Desk microphone",))
    sys.modules["sounddevice"] = device
    signal.signal(signal.SIGUSR1, lambda *_: device.lose())


if __name__ == "__main__":
    if SOUND in os.environ:
        plug_in(os.environ[SOUND])
    seconds, log, *command = sys.argv[1:]
    if float(seconds):
        slow_down(float(seconds))
    recogniser = Logged(Path(log))
    module = SimpleNamespace(SUMMARY="for tests", MODELS={}, place=lambda _: 0.0, recogniser=lambda _: recogniser)
    point = SimpleNamespace(name="moonshine", load=lambda: module)
    setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINT_GROUP else [])  # noqa: B010
    setattr(isolated, "isolated", lambda *_: recogniser)  # noqa: B010
    main(command)
