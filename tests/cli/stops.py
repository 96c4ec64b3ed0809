"""How long stops take, and whether every recognised word is accounted for: sources of speech, ways to stop, moments.

    python -m tests.cli.stops [--moments 20] [--at-once 3] [--rows FILE] [SOURCE ...]

A row for each source and way: the longest and the middle time, in seconds, from the stop to the end of the process, the
longest from its last caption, the longest of those without what its main thread waited for a processor, the longest
processor time, and how many ended with a word that is in no final caption and not named as missing.

Programs are forked from one that has the imports of a command whose captions have begun, and several speak at a time;
but while one starts or stops, no other does.  All of 18 rows by 20 moments take about eight minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import soundfile

from tests.cli.test_endings import LISTEN, PATIENCE, ROOT, TRANSLATE, Feeder, Program, heard
from tests.serve.fakes import CachedModel
from tests.serve.servers import Running, running

#: Source -> arguments of its command; {file} is a recording and {server} the address of a server.
SOURCES = {
    "microphone": LISTEN,
    "system": (*LISTEN, "--device", "system"),
    "file": (*LISTEN, "{file}", "--speed", "1"),
    "pipe": TRANSLATE,
    "server": ("listen", "--to", "de", "--output", "jsonl", "--no-sentences", "--server", "{server}"),
}
WAYS = ("SIGINT", "SIGTERM", "closed output", "lost device")


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stop: seconds until the process has ended, and since its last caption; whether no word is missing.

    Attributes:
        queued: seconds for which the main thread waited for a processor, after the stop.
        processor: seconds of processor time, after the stop.
    """

    source: str
    way: str
    moment: int
    seconds: float
    after_last: float
    queued: float
    processor: float
    complete: bool


def ways(source: str) -> tuple[str, ...]:
    """The ways in which a source can be stopped: only devices can be lost."""
    return WAYS if source in ("microphone", "system", "server") else WAYS[:-1]


class Forks:
    """Programs that are forked from one that has imported what they need (`tests.cli.stand_in`); from any thread.

    Attributes:
        busy: held while a program starts or stops, which needs the processor.
    """

    def __init__(self) -> None:
        self.busy, self._asking = threading.Lock(), threading.Lock()
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.cli.stand_in", f"{other.fileno()}"]
        nothing = subprocess.DEVNULL
        self._parent = subprocess.Popen(command, cwd=ROOT, pass_fds=[other.fileno()], stdin=nothing, stdout=nothing)
        other.close()

    def ask(self, request: object, descriptors: Sequence[int] = ()) -> int:
        """Return the answer to a request: arguments to fork with, or a process whose status is wanted."""
        with self._asking:
            socket.send_fds(self._channel, [json.dumps(request).encode()], descriptors)
            return int(self._channel.recv(100))

    def close(self) -> None:
        """End the program from which others are forked."""
        self._channel.close()
        self._parent.wait(PATIENCE)


class Forked:
    """A forked program, as `subprocess.Popen` has it."""

    def __init__(self, forks: Forks, source: str, arguments: Sequence[str]) -> None:
        (stdin, ours), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        self._forks = forks
        self._status: int | None = None
        self.pid = forks.ask([source, *arguments], [stdin, stdout, stderr])
        for each in (stdin, stdout, stderr):
            os.close(each)
        self._ended = os.pidfd_open(self.pid)
        self.stdin, self.stdout, self.stderr = os.fdopen(ours, "wb", 0), os.fdopen(out, "rb"), os.fdopen(err, "rb")

    def exited(self, seconds: float) -> bool:
        """Whether it has exited within some seconds; what the system knows about it is kept until `wait`."""
        return bool(select.select([self._ended], [], [], seconds)[0])

    def poll(self) -> int | None:
        return self.wait(0) if self.exited(0) else None

    def wait(self, timeout: float) -> int:
        assert self.exited(timeout), "it has not ended"
        if self._status is None:
            self._status = self._forks.ask(self.pid)
        return self._status

    def send_signal(self, number: signal.Signals) -> None:
        if not self.exited(0):
            signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        for each in (self.stdin, self.stdout, self.stderr):
            each.close()
        os.close(self._ended)


@contextmanager
def forked(forks: Forks, source: str, log: Path, command: Sequence[str]) -> Iterator[Program[Forked]]:
    """A program as `tests.cli.test_endings.program` runs it, but forked."""
    process = Forked(forks, source, ["0", str(log), *command])
    made = Program(process)
    try:
        yield made
    finally:
        process.kill()
        made.ended()
        process.close()


def stop(source: str, way: str, moment: int, folder: Path, forks: Forks, server: Running | None = None) -> Stopped:
    """Start a command, stop it at a random moment of its speech, and look at what it leaves."""
    log = folder / f"{source} {way} {moment}.log"
    command = [each.format(file=folder / "talk.flac", server=server and server.url) for each in SOURCES[source]]
    languages = ["de", "ja"] if source == "pipe" else ["de"]
    with ExitStack() as stack:
        with forks.busy:
            run = stack.enter_context(forked(forks, source, log, command))
            feeder = Feeder(run) if source == "pipe" else None
            run.wait_for(b'"partial"')
        time.sleep(random.Random(f"{source} {way} {moment}").uniform(0, 2))
        with forks.busy:
            if feeder is not None:  # what it wrote later would not have been recognised
                feeder.stop()
            began, before = _ask(run, way), _times(run.process.pid)
            assert run.process.exited(PATIENCE)
            ended, after = time.monotonic(), _times(run.process.pid)
        run.ended()
        recognised = heard(log) if feeder is None else feeder.recognised
        complete = True
        try:
            if server and (source, way) == ("server", "closed output"):  # viewers see the captions
                assert transcript(server, run) == recognised
            else:
                run.check(recognised, languages)
        except AssertionError as error:
            complete = False
            print(source, way, moment, error, flush=True)
        queued, processor = (late - early for late, early in zip(after, before, strict=True))
        since = ended - max(began, run.latest)
        return Stopped(source, way, moment, ended - began, since, queued, processor, complete)


def transcript(server: Running, run: Program[Forked]) -> dict[str, str]:
    """Utterance -> source of its final caption, on the server that a program used."""
    name = re.search(rb"/watch\?session=(\w+)", run.err)
    assert name, run.err
    captions = server.hub.sessions[name[1].decode()].transcript.finals
    return {caption.utterance: caption.source or "" for caption in captions}


def recording(folder: Path) -> None:
    """Write a minute of silence, in which the recogniser hears words."""
    soundfile.write(folder / "talk.flac", np.zeros(16_000 * 60, np.int16), 16_000)


def _times(pid: int) -> tuple[float, float]:
    """Seconds for which a process's main thread has waited for a processor, and its processor time so far."""
    queued = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return queued, sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def _ask(run: Program[Forked], way: str) -> float:
    """Stop a program; return when that was."""
    if way == "closed output":
        run.close_output()
        return time.monotonic()
    if way == "lost device":
        run.process.send_signal(signal.SIGUSR1)
        run.wait_for(b"has stopped recording")
    run.process.send_signal(signal.SIGTERM if way == "SIGTERM" else signal.SIGINT)
    return time.monotonic()


def row(found: Sequence[Stopped]) -> str:
    """The row of a source and way."""
    seconds = [each.seconds for each in found]
    figures = (
        max(seconds),
        statistics.median(seconds),
        max(each.after_last for each in found),
        max(each.after_last - each.queued for each in found),
        max(each.processor for each in found),
    )
    missing = sum(not each.complete for each in found)
    return "\t".join((found[0].source, found[0].way, *(f"{each:.2f}" for each in figures), f"{missing}"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", nargs="*", default=[*SOURCES])
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=3, help="programs that speak at a time")
    parser.add_argument("--rows", type=Path, help="a file for a JSON object of each stop")
    wanted = parser.parse_args()
    forks = Forks()
    rows = nullcontext(sys.stderr) if wanted.rows is None else wanted.rows.open("a", encoding="utf-8")
    serving = running(CachedModel(1), updates_per_second=1000)
    with tempfile.TemporaryDirectory() as folder, rows as out, serving as server:
        recording(Path(folder))
        for source in wanted.sources:
            # Sentences are written to a pipe faster than they are spoken, so that several would starve each other.
            with ThreadPoolExecutor(1 if source == "pipe" else wanted.at_once) as programs:
                for way in ways(source):
                    made = [
                        programs.submit(stop, source, way, moment, Path(folder), forks, server)
                        for moment in range(wanted.moments)
                    ]
                    found = [each.result() for each in made]
                    if wanted.rows is not None:
                        out.writelines(json.dumps(asdict(each)) + "\n" for each in found)
                    print(row(found), flush=True)
    forks.close()


if __name__ == "__main__":
    main()
