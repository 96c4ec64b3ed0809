"""The time of an update with several builds of llama.cpp, in one run: alone, in three languages, and of many sessions.

Each build runs in a process of its own, and they take turns, sentence by sentence.  Sessions of a server are simulated:
their updates come at the same time and share passes.  Times are processor times of one thread.

python -m redraft_bench.scripts.updates --build "as it comes=A" --build "ours=B" > benchmarks/results/updates.jsonl
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import click

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_backend, resolve
from redraft.captions.events import Update
from redraft.decoding.backend import Backend
from redraft.decoding.drive import Decoding, run_together
from redraft.decoding.types import TARGET
from redraft.signature import print_json, signature
from redraft.translator import Translator
from redraft_bench.eval.figures import Row
from redraft_bench.eval.sets import load_set, reveal

DATA = "flores200.devtest"


@dataclass(frozen=True, slots=True)
class Load:
    """What is translated at the same time: a method, its languages, the sessions, and how often."""

    method: str
    languages: tuple[str, ...] = ("de",)
    sessions: int = 1
    rounds: int = 4

    @property
    def name(self) -> str:
        """Languages or sessions in words."""
        return f"{self.sessions} sessions" if self.sessions > 1 else ", ".join(self.languages)


LOADS = (
    *(Load(method, (to,)) for to in ("de", "zh", "ja") for method in ("ar", "ssbd", "redraft")),
    Load("ssbd", ("de", "zh", "ja")),
    Load("ssbd", sessions=8, rounds=1),
    Load("ssbd", sessions=32, rounds=1),
)


@click.command(help=__doc__)
@click.option("--build", "builds", multiple=True, help="Name=folder of its libraries; no folder: what is installed.")
@click.option("--model", default="demo")
@click.option("--work", is_flag=True, hidden=True)
def main(builds: tuple[str, ...], model: str, work: bool) -> None:
    """Print one JSON object a line for every load and build."""
    if work:
        _work(model)
        return
    with ExitStack() as stack:
        folders = [build.partition("=")[::2] for build in builds]
        workers = {name: stack.enter_context(_worker(folder, model)) for name, folder in folders}
        line = signature(resolve(model), DATA, load_set(DATA, "de").hash, beta=0.2, lag=3, threads=1)
        for row in _rows(workers):
            print_json([row], line, sys.stdout)
            sys.stdout.flush()


def _worker(folder: str, model: str) -> subprocess.Popen[str]:
    environment = os.environ | ({"LLAMA_CPP_LIB_PATH": folder} if folder else {})
    command = [sys.executable, "-m", "redraft_bench.scripts.updates", "--work", "--model", model]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _rows(workers: dict[str, subprocess.Popen[str]]) -> Iterator[Row]:
    for place, load in enumerate(LOADS):
        spent, captions = dict.fromkeys(workers, 0.0), 0
        for number in range(-1, load.rounds):  # the first is a warm-up
            for name in workers if number % 2 else reversed(workers):
                pipe = workers[name]
                print(place, max(number, 0), file=pipe.stdin, flush=True)
                seconds, translated = json.loads(pipe.stdout.readline() if pipe.stdout else "")
                spent[name] += seconds * (number >= 0)
            captions += translated * (number >= 0)  # as many with every build
        times = {f"{name} ms": round(1e3 * seconds / captions, 2) for name, seconds in spent.items()}
        yield {"load": load.name, "method": load.method, "captions": captions, **times}


def _work(model: str) -> None:
    """Translate what the lines of the input ask for: the number of a load, and of a round."""
    sources = load_set(DATA, "de").sources
    updates = [reveal(str(number), source, 3) for number, source in enumerate(sources)]
    with closing(open_backend(model, LlamaOptions(512, slots=32, threads=1))) as backend:
        for line in sys.stdin:
            place, number = map(int, line.split())
            load = LOADS[place]
            first = load.sessions * number
            print(json.dumps(_translate(backend, load, updates[first : first + load.sessions])), flush=True)


def _translate(backend: Backend, load: Load, streams: Sequence[Sequence[Update]]) -> tuple[float, int]:
    """Return the processor time of all updates in seconds, and the number of captions."""
    captions = 0
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(Translator(backend, load.languages, method=load.method, hold_back=False))
            for _ in streams
        ]
        started = time.thread_time()
        for turn in range(max(map(len, streams))):
            lanes = []
            for session, updates in zip(sessions, streams, strict=True):
                if turn < len(updates):
                    askings = [each.translate(updates[turn]) for each in session.translations.values()]
                    lanes += [Decoding(*each) for each in zip(askings, session.slots, strict=True)]
            run_together(lanes, {TARGET: backend})
            captions += len(lanes)
        return time.thread_time() - started, captions


if __name__ == "__main__":
    main()
