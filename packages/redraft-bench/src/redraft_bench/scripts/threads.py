"""Measure how many threads a model should run on, alone and next to other busy processes.

Every cell of the table is a separate process, since OpenMP reads its settings when it is loaded.  For a fixed time it
runs updates of a live translation, each a pass over 20 new tokens and seven over one; the settings take turns.  Busy
processes are loops in separate sessions, like a browser.

python -m redraft_bench.scripts.threads --seconds 3 > benchmarks/results/threads.jsonl
redraft bench shape --like qwen3-0.6b --quant Q8_0 --out qwen3-0.6b.gguf
python -m redraft_bench.scripts.threads --seconds 5 --model qwen3-0.6b.gguf >> benchmarks/results/threads.jsonl
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.progress import track

from redraft.backends.llama_model import usable_cores
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_model, resolve
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.signature import print_json, signature

#: Name -> number of threads, and OpenMP's environment variables.
SETTINGS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "default": (0, {}),
    "1 thread": (1, {}),
    "all": (-1, {}),
    "all, spin 1000": (-1, {"GOMP_SPINCOUNT": "1000"}),
    "all, spin 300000": (-1, {"GOMP_SPINCOUNT": "300000"}),
    "all, passive": (-1, {"OMP_WAIT_POLICY": "passive"}),
}
USUAL = ("default", "1 thread", "all", "all, spin 300000")
#: Numbers of new tokens of an update's passes: source and draft, then single tokens.
UPDATE = (20, 1, 1, 1, 1, 1, 1, 1)
CONTEXT = 100
AUTOGROUP = Path("/proc/self/autogroup")
LOOP = "while True: pass"


@click.command(help=__doc__)
@click.option("--model", "models", multiple=True, default=["demo"], help="A name or a GGUF file; repeat.")
@click.option("--setting", "settings", multiple=True, type=click.Choice(list(SETTINGS)), default=USUAL)
@click.option("--busy", multiple=True, type=click.IntRange(0), default=(0, 1, 2), help="Other processes; repeat.")
@click.option("--seconds", default=3.0, help="Of every cell, after a quarter of it as a warm-up.", show_default=True)
@click.option("--rounds", default=1, help="Cells of every setting; the median counts.", show_default=True)
@click.option("--first", is_flag=True, help="Go before everything else that runs; needs root.")
@click.option("--cell", help="Run one cell, and print its figures: how the others are run.", hidden=True)
def main(
    models: Sequence[str],
    settings: Sequence[str],
    busy: Sequence[int],
    seconds: float,
    rounds: int,
    first: bool,
    cell: str | None,
) -> None:
    """Run all cells, model by model."""
    if cell is not None:
        print(json.dumps(measured(models[0], int(cell), seconds)))
        return
    cells = [
        (model, others, setting) for model in models for others in busy for _ in range(rounds) for setting in settings
    ]
    found: dict[tuple[str, int, str], list[float]] = {}
    for key in track(cells, "measuring", console=Console(stderr=True), transient=True):
        model, others, setting = key
        with others_busy(others, first):
            found.setdefault(key, []).append(_run_cell(model, setting, seconds, first))
    for model in models:
        rows = [_row(*key, found[key], found) for key in found if key[0] == model]
        print_json(rows, signature(resolve(model), "updates", "x".join(map(str, UPDATE)), seconds=seconds), sys.stdout)


def _run_cell(model: str, setting: str, seconds: float, first: bool) -> float:
    """Return the updates per second of one cell."""
    threads, environment = SETTINGS[setting]
    count = usable_cores() if threads < 0 else threads
    command = [sys.executable, "-m", "redraft_bench.scripts.threads", "--model", model, "--seconds", str(seconds)]
    done = subprocess.run(
        [*command, "--cell", str(count)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
        preexec_fn=go_first if first else None,
    )
    return float(json.loads(done.stdout))


def measured(model: str, threads: int, seconds: float) -> float:
    """Return updates per second of wall time."""
    with closing(open_model(model, LlamaOptions(context_length=512, threads=threads))) as backend:
        slot = backend.open_slot()
        _updates(backend, slot, seconds / 4)
        return round(_updates(backend, slot, seconds), 3)


def _updates(backend: LlamaCpp, slot: int, seconds: float) -> float:
    prefix = tuple(1 + position % 200 for position in range(CONTEXT))
    draft = Draft.chain([prefix[0]] * (UPDATE[0] - 1), Provenance.GENERATED)
    scores = [Score(prefix, draft), *(Score(prefix + (prefix[0],) * more) for more in range(1, len(UPDATE)))]
    passes, taken, started = 0, 0.0, time.perf_counter()
    # Complete the last update, unless passes stall.
    while taken < seconds or (passes % len(scores) and taken < 2 * seconds):
        score = scores[passes % len(scores)]
        rows = backend.score([(slot, score)])[0]
        for node in range(ROOT, len(score.draft)):
            rows.argmax(node)
        passes += 1
        taken = time.perf_counter() - started
    return passes / len(scores) / taken


@contextmanager
def others_busy(count: int, first: bool) -> Iterator[None]:
    """Run ``count`` processes that never wait, each in a separate session."""
    with ExitStack() as stack:
        for _ in range(count):
            loop = subprocess.Popen(
                [sys.executable, "-c", LOOP], start_new_session=True, preexec_fn=go_first if first else None
            )
            stack.callback(loop.wait)
            stack.callback(loop.kill)
        yield


def go_first() -> None:
    """Give the session of a starting process the largest share of the CPU."""
    with suppress(FileNotFoundError):
        AUTOGROUP.write_text("-20", encoding="utf-8")


def _row(
    model: str, busy: int, setting: str, cells: Sequence[float], found: Mapping[tuple[str, int, str], Sequence[float]]
) -> dict[str, str | int | float]:
    """Return a cell's row, with its speed relative to one thread under the same load, and to the best setting."""
    rates = {name: median(rates) for (of, others, name), rates in found.items() if (of, others) == (model, busy)}
    return {
        "model": Path(model).stem,
        "busy": busy,
        "setting": setting,
        "updates_per_second": round(median(cells), 3),
        "of_one_thread": round(median(cells) / rates["1 thread"], 3) if "1 thread" in rates else 0.0,
        "of_best": round(median(cells) / max(rates.values()), 3),
    }


if __name__ == "__main__":
    main()
