"""The command line with a recogniser that needs no model, and with a model that is slow on request.

    python -m tests.cli.stand_in SECONDS LOG COMMAND...

Every pass takes so many seconds longer.  What the recogniser recognises is appended to the file LOG, a line each:
the number of the utterance, a tab, and its text so far.

    python -m tests.cli.stand_in DESCRIPTOR

Forks such programs as the socket with this number asks for, each with its standard streams and a source of speech in
front of its arguments: "system" is what the computer plays, and others have a microphone; a SIGUSR1 takes it away.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from redraft.backends.llama_context import LlamaContext
from redraft.cli import main
from redraft.speech import process, registry
from redraft.speech.audio import Samples
from redraft.speech.recogniser import Hypothesis, Recognised
from tests.speech.recognisers import Scripted

#: What a command has imported once its captions begin.
BEGUN = """cli.translate cli.listen cli.shared.driver cli.shared.remote cli.shared.stream
async_translator translator backends.llamacpp speech.delay speech.process speech.microphone""".split()


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
    from tests.cli.test_microphone import Punctual  # with pytest, which takes long to import

    device = Punctual(("Loudspeaker [Loopback]",) if source == "system" else ("Desk microphone",))
    sys.modules["sounddevice"] = device
    signal.signal(signal.SIGUSR1, lambda *_: device.lose())


def fork(channel: socket.socket) -> list[str]:
    """Fork on request, with the pid or, asked for one, the status as the answer; return the arguments in the fork."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    for module in (*(f"redraft.{each}" for each in BEGUN), "tests.cli.test_microphone"):
        import_module(module)
    while True:
        message, streams, _, _ = socket.recv_fds(channel, 1 << 16, 3)
        if not message:
            sys.exit()
        asked = json.loads(message)
        if isinstance(asked, int):
            channel.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1]))
        elif child := os.fork():
            for each in streams:
                os.close(each)
            channel.send(b"%d" % child)
        else:
            channel.close()
            for number, (each, name) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), strict=True)):
                os.dup2(each, number)
                os.close(each)
                setattr(sys, name, os.fdopen(number, "w" if number else "r"))
                setattr(sys, f"__{name}__", getattr(sys, name))
            source, *arguments = asked
            plug_in(source)
            return list(arguments)


if __name__ == "__main__":
    seconds, log, *command = sys.argv[1:] if sys.argv[2:] else fork(socket.socket(fileno=int(sys.argv[1])))
    if float(seconds):
        slow_down(float(seconds))
    recogniser = Logged(Path(log))
    module = SimpleNamespace(SUMMARY="for tests", MODELS={}, place=lambda _: 0.0, recogniser=lambda _: recogniser)
    point = SimpleNamespace(name="moonshine", load=lambda: module)
    setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINT_GROUP else [])  # noqa: B010
    setattr(process, "isolated", lambda *_: recogniser)  # noqa: B010
    main(command)
