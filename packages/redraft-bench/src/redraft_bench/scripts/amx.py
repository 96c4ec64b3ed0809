"""Measure the gain from AMX: passes and methods with llama.cpp's own kernels and without its AMX kernels, in one run.

For the demo model, every method translates the sentences with both sets of kernels, taking turns update by update.  A
shape has random weights, so its times are computed from the passes for the demo model's output and the shape's T(n),
which the methods also use for drafting.  All times are CPU time of the single thread.  That excludes the time of other
programs, but not their effect on caches and memory, so every row has the machine's load.

python -m redraft_bench.scripts.amx --to de --limit 40
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from unittest.mock import patch

import click
from rich.console import Console
from rich.progress import track

from redraft.backends import kernels
from redraft.backends.costs import least, sample
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import BRANCHES_OF_A_TREE, resolve
from redraft.backends.machine import processor
from redraft.backends.quantise import quantise
from redraft.captions.events import Update
from redraft.decoding.cost import CostCurve
from redraft.decoding.method import Value
from redraft.signature import print_json, signature
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import MethodSystem
from redraft_bench.eval.sets import SETS, lag_stream, load_set
from redraft_bench.models.random_gguf import write_random
from redraft_bench.models.shape import FORMATS, SHAPES

#: Column -> method and options.
METHODS: Mapping[str, tuple[str, tuple[tuple[str, Value], ...]]] = {
    "ar": ("ar", ()),
    "ssbd": ("ssbd", (("beta", 0.2),)),
    "redraft": ("redraft", (("beta", 0.2),)),
    "tree": ("redraft-tree", (("beta", 0.2),)),
    "tree_flat": ("redraft-tree", (("beta", 0.2), ("cost", "flat"))),
}
#: Numbers of new tokens whose passes are shown.
SHOWN = (1, 2, 4, 8, 16, 32, 64)
PROGRESS = Console(stderr=True)
#: Whether llama.cpp chooses its kernels; False excludes those for AMX.
KERNELS = {"AMX": True, "no AMX": False}


@click.command(help=__doc__)
@click.option("--data", default="flores200.devtest", type=click.Choice(list(SETS)), show_default=True)
@click.option("--to", default="de", help="Target language: de, zh or ja.", show_default=True)
@click.option("--limit", default=40, help="Segments; 0 takes all.", show_default=True)
@click.option("--lag", default=3, help="Words that come at a time.", show_default=True)
@click.option("--shape", "shapes", multiple=True, default=["qwen3-0.6b"], type=click.Choice(list(SHAPES)))
@click.option("--format", "formats", multiple=True, default=["Q8_0", "Q4_K_M"], type=click.Choice(list(FORMATS)))
@click.option("--rounds", default=9, help="Of measuring T(n); the least counts.", show_default=True)
def main(data: str, to: str, limit: int, lag: int, shapes: Sequence[str], formats: Sequence[str], rounds: int) -> None:
    """Measure, and print a row for every model, format and set of kernels."""
    if not processor().has_amx or not kernels.trusted():
        raise click.ClickException("this needs a processor with AMX, and a build of llama.cpp that is right on it")
    stream = lag_stream(load_set(data, to, limit), to, lag)
    updates = list(stream.updates)
    rows: list[dict[str, str | float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for model in ("demo", *shapes):
            for weights in formats:
                path = _written(Path(folder), model, weights)
                found = _demo(path, to, updates, rounds) if model == "demo" else _shape(path, to, updates, rounds)
                load = round(os.getloadavg()[1])
                for name, (curve, seconds) in found.items():
                    figures = _figures(curve, seconds)
                    rows.append({"model": model, "weights": weights, "kernels": name, **figures, "load": load})
                path.unlink()
    line = signature(resolve("demo"), data, stream.hash, lag=lag, segments=len(stream.segments), threads=1)
    print_json(rows, line, sys.stdout)


Found = dict[str, tuple[CostCurve, dict[str, float]]]


def _figures(curve: CostCurve, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return T(n) in milliseconds, the seconds of re-translation, and the speed-up of each other method."""
    return {
        **{f"t{size}_ms": round(curve(size) * 1e3, 3) for size in SHOWN},
        "ar_seconds": round(seconds["ar"], 3),
        **{f"{name}_over_ar": round(seconds["ar"] / seconds[name], 3) for name in METHODS if name != "ar"},
    }


def _written(folder: Path, model: str, weights: str) -> Path:
    path = folder / f"{model}-{weights}.gguf"
    if model == "demo":
        quantise(resolve(model), path, weights)
    else:
        PROGRESS.print(f"writing {path.name}")
        write_random(SHAPES[model], path, weights, name=path.stem)
    return path


def _opened(stack: ExitStack, path: Path, slots: int) -> dict[str, LlamaCpp]:
    """Open the model with both sets of kernels."""
    options = LlamaOptions(context_length=512, slots=slots, branches=BRANCHES_OF_A_TREE * min(slots, 2), threads=1)
    opened = {}
    for name, trusted in KERNELS.items():
        with patch.object(kernels, "trusted", return_value=trusted):
            opened[name] = stack.enter_context(closing(LlamaCpp(path, options)))
    return opened


def _curves(backends: Mapping[str, LlamaCpp], rounds: int) -> dict[str, CostCurve]:
    """Measure T(n) of backends that take turns; the first round is a warm-up."""
    slots = {name: backend.open_slot() for name, backend in backends.items()}
    samples: dict[str, list[list[float]]] = {name: [] for name in backends}
    for _ in track(range(rounds + 1), "T(n)", console=PROGRESS):
        for name, backend in backends.items():
            samples[name].append(sample(backend, slots[name], time.thread_time))
    for name, backend in backends.items():
        backend.close_slot(slots[name])
    return {name: least(each[1:]) for name, each in samples.items()}


def _demo(path: Path, to: str, updates: Sequence[Update], rounds: int) -> Found:
    """Return the thread time of every method with both sets of kernels."""
    with ExitStack() as stack:
        backends = _opened(stack, path, slots=len(METHODS) + 1)
        curves = _curves(backends, rounds)
        systems = {
            (name, method): stack.enter_context(closing(_system(backend, method, to, curves[name])))
            for name, backend in backends.items()
            for method in METHODS
        }
        seconds = dict.fromkeys(systems, 0.0)
        for number, update in enumerate(track(updates, path.stem, console=PROGRESS)):
            for key in list(systems) if number % 2 else reversed(list(systems)):
                started = time.thread_time()
                systems[key].translate(update)
                seconds[key] += time.thread_time() - started
    return {name: (curves[name], {method: seconds[name, method] for method in METHODS}) for name in backends}


def _shape(path: Path, to: str, updates: Sequence[Update], rounds: int) -> Found:
    """Return the cost of the demo model's passes under a shape's T(n), with drafts chosen by it."""
    with ExitStack() as stack:
        curves = _curves(_opened(stack, path, slots=1), rounds)
    found: Found = {}
    with closing(
        LlamaCpp(resolve("demo"), LlamaOptions(512, len(METHODS), BRANCHES_OF_A_TREE * 2, threads=1))
    ) as backend:
        for name, curve in curves.items():
            priced: dict[str, float] = {}
            for method in METHODS:
                with closing(_system(backend, method, to, curve)) as system:
                    shown = track(updates, f"{path.stem}, {name}, {method}", console=PROGRESS)
                    priced[method] = sum(_prices(system, shown, curve))
            found[name] = curve, priced
    return found


def _prices(system: MethodSystem, updates: Iterable[Update], curve: CostCurve) -> Iterator[float]:
    for update in updates:
        step, _failures = system.translate(update)
        yield from (curve(each.new) for each in step.passes)


def _system(backend: LlamaCpp, method: str, to: str, curve: CostCurve) -> MethodSystem:
    name, options = METHODS[method]
    return MethodSystem(backend, Contender(name, to, options), curve=curve)


if __name__ == "__main__":
    main()
