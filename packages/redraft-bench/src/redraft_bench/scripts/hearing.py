"""Measure the cost of speech recognition on a server: CPU time and memory of a session's recogniser, and its lag.

Sessions send the reading of Dickens in the package moonshine-voice in real time to `redraft serve --recogniser`.  The
CPU share is the recogniser's CPU time per second of audio, in cores, with and without the start of its process.  The
lag is the time from the end of an update's audio to the message with its text.

python -m redraft_bench.scripts.hearing --sessions 1 --sessions 2
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import click
import numpy as np
from websockets.sync.client import connect

from redraft.speech.audio import RATE, file_blocks, library
from redraft.speech.dialect import pcm
from redraft.speech.endpoint import PAUSE


@contextmanager
def served(recogniser: str, pause: float) -> Iterator[tuple[int, int]]:
    """Run a server with the demo model; yield its port and its process id."""
    command = [sys.executable, "-c", "from redraft.cli import main; main()", "serve", "--port", "0"]
    environment = {**os.environ, "REDRAFT_SERVE_PAUSE": str(pause), "REDRAFT_SERVE_LISTENERS": "100"}
    with subprocess.Popen(
        [*command, "--recogniser", recogniser], stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        try:
            line = server.stderr.readline() if server.stderr else ""
            yield int(json.loads(line)["message"].rpartition(":")[2]), server.pid
        finally:
            server.terminate()


def speak(port: int, blocks: list[bytes], lags: list[float], ready: threading.Barrier) -> None:
    """Run a session that sends audio in real time."""
    with connect(f"ws://127.0.0.1:{port}/v1/live") as socket:
        socket.send(json.dumps({"type": "start", "targets": ["de"]}))
        socket.recv(60)
        socket.send(json.dumps({"type": "audio", "stream": "1"}))
        ready.wait(60)
        began = time.monotonic()

        def say() -> None:
            for number, block in enumerate(blocks, 1):
                time.sleep(max(0.0, began + number * len(block) / 2 / RATE - time.monotonic()))
                socket.send(block)
            socket.send(json.dumps({"type": "end"}))

        threading.Thread(target=say, daemon=True).start()
        while (message := json.loads(socket.recv(120)))["type"] != "done":
            if message["type"] == "error" and message["code"] != "translation":
                raise click.ClickException(message["message"])
            if message["type"] == "recognised" and (message["seq"] or message["final"]):
                lags.append(time.monotonic() - began - message["time"])


def memory(server: int) -> list[float]:
    """Return the resident memory of the server's recognisers in megabytes."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii").split()
    texts = [Path(f"/proc/{child}/status").read_text(encoding="ascii") for child in children]
    return [int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024 for text in texts]


def measured(sessions: int, recogniser: str, pause: float, blocks: list[bytes]) -> dict[str, Any]:
    """Return the figures of ``sessions`` concurrent sessions."""
    lags: list[float] = []
    with served(recogniser, pause) as (port, process):
        ready = threading.Barrier(sessions)
        threads = [threading.Thread(target=speak, args=(port, blocks, lags, ready)) for _ in range(sessions)]
        for thread in threads:
            thread.start()
        seconds = sum(map(len, blocks)) / 2 / RATE
        time.sleep(seconds / 4)
        before = metrics(port)
        time.sleep(seconds / 2)
        after, resident = metrics(port), memory(process)
        for thread in threads:
            thread.join()
        whole = metrics(port)
    cpu, audio = "redraft_recogniser_cpu_seconds_total", "redraft_audio_seconds_total"
    return {
        "sessions": sessions,
        "cpu_share": round((after[cpu] - before[cpu]) / (after[audio] - before[audio]), 3),
        "cpu_share_with_start": round(whole[cpu] / whole[audio], 3),
        "memory_mb": round(float(np.mean(resident))),
        **{f"lag_p{each}": round(float(np.percentile(lags, each)), 2) for each in (50, 95)},
        "lost_seconds": whole["redraft_lost_audio_seconds_total"],
    }


def metrics(port: int) -> dict[str, float]:
    """Return the server's metrics."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}


@click.command(help=__doc__)
@click.option("--recogniser", default="moonshine", show_default=True)
@click.option("--sessions", type=click.IntRange(1, 100), multiple=True, default=[1, 2], show_default=True)
@click.option("--pause", default=PAUSE, show_default=True)
def main(recogniser: str, sessions: tuple[int, ...], pause: float) -> None:
    """Measure and print."""
    recording = Path(library("moonshine_voice").get_assets_path()) / "two_cities.wav"
    blocks = [pcm(block) for block in file_blocks(str(recording))]
    for each in sessions:
        click.echo(json.dumps({"recogniser": recogniser, **measured(each, recogniser, pause, blocks)}))


if __name__ == "__main__":
    main()
