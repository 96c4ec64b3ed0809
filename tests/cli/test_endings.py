"""Endings at random moments: every recognised word is in a final caption, or named as one without a caption."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import pytest
import soundfile

from redraft import deadlines
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.serve.servers import Running

MOMENTS = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1
ROOT = Path(__file__).parents[2]
#: Seconds by which each pass of the model takes longer, and seconds between two lines of the recogniser.
SPEEDS = {"fast": 0.0, "slow": 0.05}
BEAT = 0.04
PATIENCE = 120.0
NAMED = re.compile(r"^redraft: utterance (\w+), ([\w, ]+): no caption: (.*)$", re.MULTILINE)
WORDS = ["I", "have", "a", "dog", "and", "number"]

at_moments = pytest.mark.parametrize("moment", range(MOMENTS))
at_speeds = pytest.mark.parametrize("speed", SPEEDS)


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """Do not inherit an ignored SIGHUP, as under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


class Process(Protocol):
    """What is needed of `subprocess.Popen`."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...


Started = TypeVar("Started", bound=Process)


class Program(Generic[Started]):
    """The command line as a process whose output is collected."""

    def __init__(self, process: Started) -> None:
        self.process, self.out, self.err = process, b"", b""
        self._closing = False
        #: When it wrote something on standard output last.
        self.latest = 0.0
        assert process.stdin and process.stdout and process.stderr
        self.stdin = process.stdin
        self._threads = [
            threading.Thread(target=self._collect, args=(process.stdout, "out"), daemon=True),
            threading.Thread(target=self._collect, args=(process.stderr, "err"), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close_output(self) -> None:
        """Close standard output as a reader does that has read everything: waiting for more would keep it open."""
        self._closing = True
        self._threads[0].join(PATIENCE)
        assert self.process.stdout
        os.dup2(os.open(os.devnull, os.O_RDONLY), self.process.stdout.fileno())

    def _collect(self, pipe: IO[bytes], name: str) -> None:
        with suppress(OSError, ValueError):  # closed by the test
            while True:
                while not select.select([pipe], [], [], 0.01)[0]:  # a read that waits would keep a closed pipe open
                    if self._closing and name == "out":
                        return
                if not (data := os.read(pipe.fileno(), 1 << 16)):
                    return
                setattr(self, name, getattr(self, name) + data)
                self.latest = time.monotonic() if name == "out" else self.latest

    def wait_for(self, sign: bytes) -> None:
        """Wait until the program has written something."""
        end = time.monotonic() + PATIENCE
        while sign not in self.out + self.err:
            assert time.monotonic() < end and self.process.poll() is None, self.err
            time.sleep(0.005)

    def ended(self) -> int:
        status = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return status

    @property
    def finals(self) -> dict[str, dict[str, str | None]]:
        """Utterance -> language -> source of its final caption; None if the model gave none, which is reported."""
        found: dict[str, dict[str, str | None]] = {}
        for line in self.out.decode().splitlines():
            row = json.loads(line)
            if row["type"] == "partial" or "language" not in row:
                continue
            if row["language"] not in found.setdefault(row["utterance"], {}):
                found[row["utterance"]][row["language"]] = row.get("source")
        return found

    @property
    def named(self) -> dict[str, tuple[set[str], str]]:
        """Utterance -> languages without a caption, and its text."""
        found = NAMED.findall(self.err.decode())
        assert len({name for name, _, _ in found}) == len(found)
        return {name: (set(languages.split(", ")), text) for name, languages, text in found}

    def check(self, recognised: dict[str, str], languages: Sequence[str] = ("de", "ja")) -> None:
        """Check that each utterance has its final captions, or is named with the languages that have none."""
        for name, text in recognised.items():
            finals, (missing, words) = self.finals.get(name, {}), self.named.get(name, (set(), text))
            assert finals.keys() | missing == set(languages) and not finals.keys() & missing, (name, text, self.err)
            assert {*finals.values(), words} - {None} == {text}, name
        assert self.finals.keys() | self.named.keys() <= recognised.keys()


@contextmanager
def program(
    *arguments: str, speed: str = "fast", log: Path = Path(os.devnull)
) -> Iterator[Program[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "tests.cli.stand_in", str(SPEEDS[speed]), str(log), *arguments]
    # A shell's background jobs ignore the signal, and so would all that they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield (made := Program(process))
        finally:
            process.kill()
            made.ended()


class Feeder:
    """Writes growing sentences to a pipe, once the program writes captions, until it is stopped; the pipe stays open.

    Attributes:
        recognised: utterance -> the newest text written.
    """

    def __init__(self, run: Program[Any]) -> None:
        self.recognised = {"1": "I"}
        self._pipe, self._stop = run.stdin, threading.Event()
        self._write("I")
        run.wait_for(b'"partial"')
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        for number in range(1, 1000):
            words = [*WORDS, f"{number}"]
            for count in range(1, len(words) + 1):
                if self._stop.wait(BEAT):
                    return
                text = " ".join(words[:count])
                self._write(text)
                self.recognised[str(number)] = text
            self._write("")

    def _write(self, text: str) -> None:
        os.write(self._pipe.fileno(), f"{text}\n".encode())

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)


TRANSLATE = ("translate", "--to", "de", "--to", "ja", "--engine", "threads=1", "--output", "jsonl")


def pause(moment: int, *about: object) -> None:
    """Wait for a random time, the same in every run."""
    time.sleep(random.Random(f"{moment} {about}").uniform(0, 2))


@at_moments
@pytest.mark.parametrize(
    ("number", "speed"),
    [(signal.SIGINT, "fast"), (signal.SIGINT, "slow"), (signal.SIGTERM, "slow"), (signal.SIGHUP, "fast")],
)
def test_signal(number: signal.Signals, speed: str, moment: int) -> None:
    with program(*TRANSLATE, speed=speed) as run:
        feeder = Feeder(run)
        pause(moment, number, speed)
        feeder.stop()
        run.process.send_signal(number)
        assert run.ended() == 128 + number
        run.check(feeder.recognised)
        assert not run.named
        assert b"redraft: stopping, and finishing " in run.err


@at_moments
def test_second_signal(moment: int) -> None:
    with program(*TRANSLATE, speed="slow") as run:
        feeder = Feeder(run)
        pause(moment)
        feeder.stop()
        run.process.send_signal(signal.SIGINT)
        run.wait_for(b"redraft: stopping")
        time.sleep(0.15)
        run.process.send_signal(signal.SIGTERM)
        assert run.ended() == 128 + signal.SIGTERM
        run.check(feeder.recognised)
        assert run.named and run.err.count(b"\n") == 1 + len(run.named)


@at_moments
@at_speeds
def test_closed_output(speed: str, moment: int) -> None:
    with program(*TRANSLATE, speed=speed) as run:
        feeder = Feeder(run)
        pause(moment, speed)
        # What the program has written is read, and what it writes from here on is not.
        run.process.send_signal(signal.SIGSTOP)
        feeder.stop()
        time.sleep(0.3)
        assert run.process.stdout
        os.dup2(os.open(os.devnull, os.O_RDONLY), run.process.stdout.fileno())
        time.sleep(0.1)  # until no thread waits for the pipe, which keeps it open
        run.stdin.close()
        run.process.send_signal(signal.SIGCONT)
        assert run.ended() == 0
        run.check(feeder.recognised)


@at_moments
def test_closed_terminal(tmp_path: Path, moment: int) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.cli.stand_in", "0", os.devnull, *TRANSLATE]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
        os.execv(command[0], command)
    end = time.monotonic() + PATIENCE
    os.write(terminal, b"I have\nI have a\n")
    while not (out.exists() and out.read_bytes()):
        assert time.monotonic() < end
        time.sleep(0.01)
    pause(moment)
    os.write(terminal, b"I have a dog\n\nWe saw\n")
    time.sleep(0.5)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGHUP
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    finals = [(row["language"], row["source"]) for row in rows if row["type"] == "final"]
    assert sorted(finals) == [(tag, text) for tag in ("de", "ja") for text in ("I have a dog", "We saw")]


LISTEN = ("listen", "--to", "de", "--engine", "threads=1", "--output", "jsonl", "--no-sentences")


def heard(log: Path) -> dict[str, str]:
    """The newest text of each utterance of the recogniser, by name."""
    lines = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]
    newest = dict(line for line in lines)
    return {str(number): text for number, text in enumerate(newest.values(), 1)}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    soundfile.write(tmp_path / "talk.flac", np.zeros(16_000 * 900, np.int16), 16_000)
    return tmp_path / "talk.flac"


@at_moments
@pytest.mark.parametrize(("pace", "speed"), [(("--speed", "8"), "fast"), ((), "slow")], ids=str)
def test_listening(recording: Path, tmp_path: Path, pace: tuple[str, ...], speed: str, moment: int) -> None:
    log = tmp_path / "log"
    with program(*LISTEN, str(recording), *pace, speed=speed, log=log) as run:
        run.wait_for(b'"partial"')
        pause(moment, speed)
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGINT)
        assert run.ended() in ((130,) if pace else (0, 130))  # a file may be through
        run.check(heard(log), ["de"])
        assert not run.named


@at_moments
def test_listening_twice(recording: Path, tmp_path: Path, moment: int) -> None:
    log = tmp_path / "log"
    with program(*LISTEN, str(recording), "--speed", "30", speed="slow", log=log) as run:
        run.wait_for(b'"partial"')
        pause(moment)
        run.process.send_signal(signal.SIGINT)
        run.wait_for(b"redraft: stopping")
        time.sleep(0.15)
        run.process.send_signal(signal.SIGINT)
        assert run.ended() in (130, -signal.SIGINT)  # it may have been about to exit
        run.check(heard(log), ["de"])


@at_moments
@pytest.mark.parametrize("twice", [False, True])
def test_standard_input_of_living_feeder(tmp_path: Path, twice: bool, moment: int) -> None:
    log = tmp_path / "log"
    with program(*LISTEN, "-", log=log) as run:
        run.stdin.write(bytes(2 * 16_000 * 5))
        run.stdin.flush()
        run.wait_for(b'"partial"')
        pause(moment)
        run.process.send_signal(signal.SIGINT)
        if twice:
            run.process.send_signal(signal.SIGTERM)  # together: one request, of either
        # It was -6: "Fatal Python error: _enter_buffered_busy".  SIGTERM may also come when all is done.
        assert run.ended() in (130, 143, -signal.SIGTERM), run.err
        run.check(heard(log), ["de"])
        assert not run.named


@pytest.fixture
def serve() -> Iterator[Running]:
    """A server on a table model whose passes take a while."""
    from tests.serve.fakes import CachedModel
    from tests.serve.servers import running

    def slow(_: object) -> bool:
        time.sleep(0.02)
        return False

    with running(CachedModel(1, broken=slow), updates_per_second=1000) as server:
        yield server


@at_moments
@pytest.mark.parametrize("way", ["signal", "closed output"])
def test_on_server(serve: Running, way: str, moment: int) -> None:
    """The transcript of the server, for its viewers, has all that was recognised."""
    with program("translate", "--to", "de", "--output", "jsonl", "--server", serve.url) as run:
        feeder = Feeder(run)
        (session,) = serve.hub.sessions.values()
        pause(moment)
        if way == "signal":
            feeder.stop()
            run.process.send_signal(signal.SIGTERM)
            assert run.ended() == 128 + signal.SIGTERM
            run.check(feeder.recognised, ["de"])
            assert not run.named
        else:
            run.process.send_signal(signal.SIGSTOP)
            feeder.stop()
            time.sleep(0.3)
            assert run.process.stdout
            os.dup2(os.open(os.devnull, os.O_RDONLY), run.process.stdout.fileno())
            run.stdin.close()
            run.process.send_signal(signal.SIGCONT)
            assert run.ended() == 0
        found = {caption.utterance: caption.source for caption in session.transcript.finals}
        assert found == feeder.recognised


@at_moments
def test_server_twice(serve: Running, moment: int) -> None:
    with program("translate", "--to", "de", "--output", "jsonl", "--server", serve.url) as run:
        feeder = Feeder(run)
        pause(moment)
        feeder.stop()
        run.process.send_signal(signal.SIGINT)
        run.wait_for(b"redraft: stopping")
        time.sleep(0.15)
        run.process.send_signal(signal.SIGINT)
        assert run.ended() in (130, -signal.SIGINT)  # it may have been about to exit
        run.check(feeder.recognised, ["de"])
        assert b"Traceback" not in run.err and b"never retrieved" not in run.err


def test_session_is_lost(serve: Running) -> None:
    """Words of a session that cannot be resumed are reported."""
    with program("translate", "--to", "de", "--output", "jsonl", "--server", serve.url) as run:
        feeder = Feeder(run)
        pause(0)
        feeder.stop()
        (session,) = serve.hub.sessions.values()
        serve.call(lambda: session.broadcast.replaced("another client goes on with it"))
        assert run.ended() == 2
        run.check(feeder.recognised, ["de"])


def test_nothing_recognised() -> None:
    with program(*TRANSLATE) as run:
        run.stdin.write(b"I have\n\n")
        run.stdin.flush()
        run.wait_for(b'"ja"')
        eventually(lambda: len(run.finals.get("1", ())) == 2)
        run.process.send_signal(signal.SIGINT)
        assert run.ended() == 130
        assert run.err == b"redraft: stopping, and finishing what was recognised; press Ctrl-C again to stop at once\n"


def test_third_signal() -> None:
    """The second one is not enough for a call that never returns; the third one ends the process."""
    code = """
import os, time
from redraft.cli.shared.ending import Ending
with Ending() as ending, ending.by_signals():
    ending.stop = lambda: os.write(1, b"asked\\n")  # a signal may come while "ready" is being written
    os.write(1, b"ready\\n")
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            os.write(1, b"interrupted\\n")
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "asked\n"
        time.sleep(2 * deadlines.TOGETHER)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        time.sleep(2 * deadlines.TOGETHER)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()
