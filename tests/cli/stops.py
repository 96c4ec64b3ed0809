"""How long stops take, and whether every recognised word is accounted for: sources of speech, ways to stop, moments.

    python -m tests.cli.stops [--moments 20] [SOURCE ...]

A row for each source and way: the longest and the middle time, in seconds, from the stop to the end of the process, the
longest from its last caption, the longest of those without what its main thread waited for a processor, the longest
processor time, and how many ended with a word that is in no final caption and not named as missing.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from tests.cli import stand_in
from tests.cli.test_endings import LISTEN, TRANSLATE, Feeder, Program, heard, program
from tests.serve.fakes import CachedModel
from tests.serve.servers import running

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

    seconds: float
    after_last: float
    queued: float
    processor: float
    complete: bool


def ways(source: str) -> tuple[str, ...]:
    """The ways in which a source can be stopped: only devices can be lost."""
    return WAYS if source in ("microphone", "system", "server") else WAYS[:-1]


def stop(source: str, way: str, moment: int, folder: Path, server: str = "") -> Stopped:
    """Start a command, stop it at a random moment of its speech, and look at what it leaves."""
    recording, log = folder / "talk.flac", folder / f"{source} {way} {moment}.log"
    if source == "file" and not recording.exists():
        soundfile.write(recording, np.zeros(16_000 * 60, np.int16), 16_000)
    command = [each.format(file=recording, server=server) for each in SOURCES[source]]
    languages = ["de", "ja"] if source == "pipe" else ["de"]
    os.environ[stand_in.SOUND] = source
    try:
        with program(*command, log=log) as run:
            feeder = Feeder(run) if source == "pipe" else None
            run.wait_for(b'"partial"')
            time.sleep(random.Random(f"{source} {way} {moment}").uniform(0, 2))
            began, before = _ask(run, way), _times(run.process.pid)
            if feeder is not None:
                feeder.stop()
            os.waitid(os.P_PID, run.process.pid, os.WEXITED | os.WNOWAIT)
            ended, after = time.monotonic(), _times(run.process.pid)
            run.ended()
            recognised = heard(log) if feeder is None else feeder.recognised
            complete = True
            try:
                run.check(recognised, languages)
            except AssertionError as error:
                complete = False
                print(source, way, moment, error)
            queued, processor = (late - early for late, early in zip(after, before, strict=True))
            return Stopped(ended - began, ended - max(began, run.latest), queued, processor, complete)
    finally:
        del os.environ[stand_in.SOUND]


def _times(pid: int) -> tuple[float, float]:
    """Seconds for which a process's main thread has waited for a processor, and its processor time so far."""
    queued = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return queued, sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def _ask(run: Program, way: str) -> float:
    """Stop a program; return when that was."""
    if way == "closed output":
        assert run.process.stdout
        os.dup2(os.open(os.devnull, os.O_RDONLY), run.process.stdout.fileno())
        return time.monotonic()
    if way == "lost device":
        run.process.send_signal(signal.SIGUSR1)
        run.wait_for(b"has stopped recording")
    run.process.send_signal(signal.SIGTERM if way == "SIGTERM" else signal.SIGINT)
    return time.monotonic()


@contextmanager
def served(source: str) -> Iterator[str]:
    """The address of a server, if the source needs one."""
    if source != "server":
        yield ""
        return
    with running(CachedModel(1), updates_per_second=1000) as server:
        yield server.url


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", nargs="*", default=[*SOURCES])
    parser.add_argument("--moments", type=int, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for source in wanted.sources:
            with served(source) as server:
                for way in ways(source):
                    found = [stop(source, way, each, Path(folder), server) for each in range(wanted.moments)]
                    seconds = [each.seconds for each in found]
                    after, missing = max(each.after_last for each in found), sum(not each.complete for each in found)
                    idle = max(each.after_last - each.queued for each in found)
                    used = max(each.processor for each in found)
                    figures = (max(seconds), statistics.median(seconds), after, idle, used)
                    print(source, way, *(f"{each:.2f}" for each in figures), missing, sep="\t", flush=True)


if __name__ == "__main__":
    main()
