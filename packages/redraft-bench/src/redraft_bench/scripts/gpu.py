"""Measure the backend `hf` on a GPU: passes, recorded streams, many sessions, and the ids of the CPU.

The models have random weights in the shapes of Qwen3 0.6B to 8B, made on the spot.  Passes are those of runs of
``redraft bench run``.  Rows are written one by one, the most important first, and the program
ends by --limit; a part that fails is reported, and the next one runs.

python -m redraft_bench.scripts.gpu --limit 300 --out gpu.jsonl runs/ssbd-talk-de.records.jsonl
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeAlias

import click
import torch
import transformers

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.signature import file_hash, signature, text_hash
from redraft_bench.eval.replay import Trace, read_traces, requests
from redraft_bench.scripts.gpu_ids import parity
from redraft_bench.scripts.gpu_models import SHAPES, SMALL, copied, model_of, opened
from redraft_bench.scripts.gpu_passes import Row, busy_times, pass_times, session_times, stream_times, timed

#: A part: until when it may run -> its rows.
Part: TypeAlias = Callable[[float], Iterable[Row]]

#: Seconds before the limit at which the program ends whatever it does, and from which on no part should run.
END, RESERVE = 2.0, 8.0
#: Methods whose passes are repeated.
METHODS = ("ar", "local-agreement", "ssbd", "redraft")
#: Shares of the time: cost of passes, recorded streams, sessions, time that the GPU works, ids.
WEIGHTS = {"pass": 3.0, "stream": 5.0, "sessions": 4.0, "busy": 0.4, "ids": 4.0}


@dataclass(slots=True)
class Card:
    """What is measured on: the device, with its ceilings, and one model at a time."""

    device: str
    _name: str = ""
    _backend: HfDecoder | None = None

    def backend(self, name: str) -> HfDecoder:
        """Return the backend of a shape; the one before is freed."""
        if self._backend is None or self._name != name:
            self.free()
            started = time.perf_counter()
            self._backend, self._name = opened(SHAPES[name], self.device), name
            say(f"{name} made in {time.perf_counter() - started:.1f} s")
        return self._backend

    def free(self) -> None:
        """Free the model."""
        if self._backend is not None:
            self._backend.close()
        self._backend = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    @property
    def name(self) -> str:
        """Name of the device."""
        return torch.cuda.get_device_name() if self.device == "cuda" else "CPU"

    def ceilings(self, _until: float) -> Iterator[Row]:
        """Yield the rates of a large copy and of a large product, in GB/s and TFLOP/s."""
        size = 8192 if self.device == "cuda" else 256
        first, second = (torch.randn(size, size, device=self.device, dtype=torch.bfloat16) for _ in range(2))
        large = torch.randn(4 * size, size, 8, device=self.device, dtype=torch.bfloat16)
        copied, made = torch.empty_like(large), torch.empty_like(first)
        copy = median([timed(lambda: copied.copy_(large)) for _ in range(20)][5:])
        product = median([timed(lambda: torch.mm(first, second, out=made)) for _ in range(20)][5:])
        moved = 2 * large.numel() * large.element_size()
        yield {"gigabytes_per_second": moved / copy / 1e9, "teraflops": 2 * size**3 / product / 1e12}

    def ids(self, until: float) -> Iterator[Row]:
        """Yield the comparison with the CPU."""
        self.free()
        model = model_of(SMALL, "cpu", "float32", scale=0.1)
        yield from parity(copied(model, "cpu"), copied(model, self.device), until)


def say(words: str) -> None:
    """Report progress."""
    print(words, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Report:
    """The file of rows."""

    out: Path
    facts: Callable[[str], str]

    def add(self, part: str, shape: str, row: Row) -> None:
        """Write a row."""
        rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        with self.out.open("a", encoding="utf-8") as file:
            line = {"part": part, "shape": shape, **rounded, "signature": self.facts(shape)}
            file.write(json.dumps(line) + "\n")


def parts(card: Card, shapes: Sequence[str], traces: Sequence[Trace]) -> Iterator[tuple[str, str, Part]]:
    """Yield the parts in their order: kind, shape and what measures it."""
    groups: dict[tuple[str, str, str], list[Trace]] = {}
    for trace in traces:
        groups.setdefault((trace.model, trace.data, trace.language), []).append(trace)
    recorded = list(groups.values())
    prompt = int(median(len(passes[0].prefix) for trace in recorded[0] for passes in trace.updates if passes))
    yield "ceilings", "", card.ceilings
    for place, name in enumerate(shapes):
        yield "pass", name, partial(_passes, card, name, prompt)
        for group in recorded if place == 0 else recorded[:1]:
            yield "stream", name, partial(_of_group, stream_times, card, name, group)
        yield "sessions", name, partial(_of_group, session_times, card, name, recorded[0])
        yield "busy", name, partial(_busy, card, name, prompt)
        if place == 0:
            yield "ids", "", card.ids


def _passes(card: Card, name: str, prompt: int, until: float) -> Iterable[Row]:
    return pass_times(card.backend(name), prompt, until)


def _busy(card: Card, name: str, prompt: int, until: float) -> Iterable[Row]:
    return busy_times(card.backend(name), prompt, until)


def _of_group(
    measured: Callable[[HfDecoder, Sequence[Trace], float], Iterable[Row]],
    card: Card,
    name: str,
    traces: Sequence[Trace],
    until: float,
) -> Iterable[Row]:
    backend = card.backend(name)
    within = [replace(each, updates=tuple(requests(each.steps, backend.vocabulary_size))) for each in traces]
    return measured(backend, within, until)


def compared(files: Iterable[Path]) -> list[Trace]:
    """Return the traces of files of records that are repeated."""
    return [trace for file in files for trace in read_traces(file) if re.split("[ ,]", trace.method)[0] in METHODS]


def report_on(recorded: Iterable[Path], out: Path, device: str) -> Report:
    """Return an empty report."""
    settings = {"card": Card(device).name, "torch": torch.__version__, "transformers": transformers.__version__}
    digest = text_hash("".join(map(file_hash, recorded)))

    def facts(shape: str) -> str:
        model = f"random-qwen3-{shape}" if shape else "random"
        return signature(Path(model), "traces", digest, 0, **settings, dtype="bfloat16" if shape else "float32")

    return Report(out, facts)


def run(left: list[tuple[str, str, Part]], report: Report, until: float) -> None:
    """Run the parts, each for its share of the time that is left; one that fails is reported."""
    while left:
        whole = sum(WEIGHTS.get(kind, 0.1) for kind, _, _ in left)
        kind, shape, measure = left.pop(0)
        since = time.monotonic()
        try:
            for row in measure(since + max(0.0, (until - since) * WEIGHTS.get(kind, 0.1) / whole)):
                report.add(kind, shape, row)
        except Exception as error:  # the other parts are worth having
            traceback.print_exc()
            report.add("failed", shape, {"kind": kind, "error": repr(error)[:200]})
        say(f"{kind} {shape}: {time.monotonic() - since:.1f} s, {until - time.monotonic():.0f} s left")


@click.command(help=__doc__)
@click.argument("recorded", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to which rows are added.")
@click.option("--limit", default=300.0, help="Seconds until it ends.", show_default=True)
@click.option("--began", type=float, help="Unix time from which these count; now by default.")
@click.option("--shape", "shapes", multiple=True, type=click.Choice(list(SHAPES)), help="Repeatable.")
@click.option("--device", default="cuda", show_default=True)
def main(
    recorded: tuple[Path, ...], out: Path, limit: float, began: float | None, shapes: Sequence[str], device: str
) -> None:
    """Run all parts."""
    ends = time.monotonic() + limit - (0.0 if began is None else time.time() - began)
    report, card = report_on(recorded, out, device), Card(device)

    def end() -> None:
        say(f"ended at the limit of {limit:g} s")
        os._exit(0)

    watch = threading.Timer(ends - END - time.monotonic(), end)
    watch.daemon = True
    watch.start()
    chosen = shapes or [name for name in SHAPES if name != "toy"]
    run([*parts(card, chosen, compared(recorded))], report, ends - RESERVE)
    watch.cancel()


if __name__ == "__main__":
    main()
