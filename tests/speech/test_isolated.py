"""Recognisers in processes: recognised text is kept and no speech is lost, however they end."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.errors import InputError, ModelError, OptionError
from redraft.speech import worker
from redraft.speech.audio import Samples
from redraft.speech.process import IsolatedRecogniser, RecogniserProcess, isolated
from redraft.speech.recogniser import Hypothesis, transcribe
from redraft.speech.sentences import SentenceCutter
from redraft.speech.worker import Progress, work
from tests.serve.hearing import SENTENCE, command
from tests.speech.recognisers import Scripted, silence
from tests.waiting import eventually


def opened(*options: str, stalled: float = 30.0) -> IsolatedRecogniser:
    return IsolatedRecogniser(RecogniserProcess(command(*options)("en"), stalled=stalled))


def finals(items: list[Item]) -> list[tuple[str, float | None]]:
    return [(item.text, item.time) for item in items if isinstance(item, Update) and item.final]


def failures(items: list[Item]) -> list[str]:
    return [item.message for item in items if isinstance(item, Failure)]


def test_same_as_in_this_process() -> None:
    assert list(transcribe(silence(9.3), opened())) == list(transcribe(silence(9.3), Scripted(4, sentence=SENTENCE)))


def test_sentences() -> None:
    options = "--sentence", "light, and it was"
    isolated = transcribe(silence(15), opened(*options), SentenceCutter())  # reads seconds ahead of the process
    here = transcribe(silence(15), Scripted(4, sentence=options[1]), SentenceCutter())
    assert finals(list(isolated)) == finals(list(here))


def test_killed() -> None:
    recogniser, items = opened(), list[Item]()
    for item in transcribe(silence(10), recogniser):
        if len(items) == 7:  # in the second utterance
            recogniser._process._kill()
        items.append(item)
    assert finals(items) == [(SENTENCE, time) for time in (2.0, 4.0, 6.0, 8.0, 10.0)]
    assert failures(items) == [
        "the recogniser's process ended with signal SIGKILL; it was started again, and no audio is lost"
    ]
    assert len({item.utterance for item in items if isinstance(item, Update)}) == 5


def test_exception() -> None:
    items = list(transcribe(silence(18), opened("--dies-after", "11.2")))
    assert finals(items) == [(SENTENCE, 2.0 * (number + 1)) for number in range(9)]
    assert "RuntimeError: out of memory; it was started again" in failures(items)[0]


def test_hypothesis_that_is_no_update() -> None:
    class Odd(Scripted):
        def hear(self, samples: Samples) -> Iterator[Hypothesis]:
            yield Hypothesis("we", 0.0, 0.1, False, speaker="")

    out = io.BytesIO()
    assert work(io.BytesIO(bytes(32_000)), out, lambda: Odd(4)) == 0
    told = [Progress.read(line).item for line in out.getvalue().splitlines()]
    (failure,) = [each for each in told if each is not None]
    assert isinstance(failure, Failure) and "speaker must be" in failure.message


def test_dying_twice() -> None:
    items = list(transcribe(silence(10), opened("--dies-after", "0.7")))
    assert finals(items)[0][0] == "we"
    assert "RuntimeError: out of memory; it was started again" in failures(items)[0]
    assert failures(items)[1].endswith("twice within 10 s of audio") and len(failures(items)) == 2


def test_stalled(tmp_path: Path) -> None:
    flag = tmp_path / "slow"
    flag.touch()
    items: list[Item] = []
    for item in transcribe(silence(10), opened("--slow", str(flag), stalled=4)):
        items.append(item)
        if isinstance(item, Failure):
            flag.unlink()
    assert finals(items) == [(SENTENCE, time) for time in (2.0, 4.0, 6.0, 8.0, 10.0)]
    assert failures(items) == ["the recogniser did nothing for 4 s; it was started again, and no audio is lost"]


def test_pause_of_source_is_no_stall() -> None:
    paused = threading.Event()

    def blocks() -> Iterator[Samples]:
        yield from silence(1.3)
        paused.wait(4)
        yield from silence(2.7)

    items = list(transcribe(blocks(), opened(stalled=3.5)))
    assert finals(items) == [(SENTENCE, 2.0), (SENTENCE, 4.0)] and not failures(items)


def test_it_cannot_be_opened() -> None:
    with pytest.raises(ModelError, match="RuntimeError: the model is broken"):
        opened("--fails")
    with pytest.raises(ModelError, match="cannot be started: its process ended with status 2"):
        opened("--unknown")
    with pytest.raises(OptionError, match="moonshine recognises ar, en, es, ja, ko, uk, vi, zh, not 'fr'"):
        isolated("moonshine", "fr", 0.5, None)
    with pytest.raises(InputError, match="the recogniser at ws://127.0.0.1:9/ cannot be reached"):
        isolated("vosk:ws://127.0.0.1:9", "en", 0.5, None)


@pytest.mark.parametrize("line", ["", "no JSON"])
def test_process_that_does_not_begin(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """It ends at once, or stays after a line that is no message: either way, nothing of it is left."""
    monkeypatch.setattr("redraft.deadlines.PROCESS_ENDS", 0.5)
    more = f"print({line!r}, flush=True); import time; time.sleep(60)" if line else "raise SystemExit(3)"
    before = set(threading.enumerate())
    with pytest.raises(ModelError, match="status 3" if not line else "SIGKILL"):
        IsolatedRecogniser(RecogniserProcess([sys.executable, "-c", more]))
    eventually(lambda: {*threading.enumerate()} <= before)  # asyncio's thread that waited for it ends a moment later


@pytest.mark.skipif(os.name != "posix", reason="other systems have no process groups")
def test_process_that_starts_another() -> None:
    """If it hangs, both are killed: the second one has the same pipes, which would be waited for."""
    hangs = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(40)'])"

    async def work() -> list[Progress]:
        process = RecogniserProcess([sys.executable, "-c", f"{hangs}; time.sleep(40)"], opens=2)
        async with asyncio.timeout(30), aclosing(process.progress()) as messages:
            return [each async for each in messages]

    again, over = asyncio.run(work())
    assert isinstance(again.item, Failure) and "it was started again" in again.item.message
    assert isinstance(over.item, Failure) and "twice within" in over.item.message


def test_ctrl_c_while_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(*given: Any, **named: Any) -> subprocess.Popen[bytes]:
        started.append(real(*given, **named))
        return started[-1]

    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    interrupts = "import os, signal, time; time.sleep(1); os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        IsolatedRecogniser(RecogniserProcess([sys.executable, "-c", interrupts]))
    assert started[0].returncode == -signal.SIGKILL


def test_bounded_memory() -> None:
    recogniser = opened()
    with closing(recogniser(silence(3600))) as recognised:
        assert any(isinstance(each, float) and each > 59 for each in recognised)
        assert len(recogniser._process.audio._audio) <= 31.2 * 32_000
    assert not recogniser._process.audio._audio


def test_reader_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        worker.command("nope", "en", 0.5, None),
        stdin=subprocess.DEVNULL,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
        timeout=200,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
