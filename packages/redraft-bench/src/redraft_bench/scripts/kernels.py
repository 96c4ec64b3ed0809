"""T(n) of a model with the installed build of llama.cpp: of the demo model by format of the weights, of others as is.

The fastest of several passes; of one thread the processor time, of several the time that passes, for which nothing else
may run.  Another build is named by LLAMA_CPP_LIB_PATH, the folder of its libraries.

python -m redraft_bench.scripts.kernels --build ours >> benchmarks/results/kernels.jsonl
python -m redraft_bench.scripts.kernels --build ours --model qwen-0.5b --threads 2 >> benchmarks/results/kernels.jsonl
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from redraft.backends import costs
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import resolve
from redraft.backends.options import LlamaOptions
from redraft.signature import print_json, signature
from redraft_bench.eval.figures import Row
from redraft_bench.quantise import quantise
from redraft_bench.scripts.real_models import MODELS

FORMATS = ("Q8_0", "BF16", "Q4_0", "Q4_K_M")
#: Format of the files of `MODELS`.
FORMAT_OF_OTHERS = "Q4_K_M"
SHOWN = (1, 2, 3, 4, 6, 8, 16, 32)


@click.command(help=__doc__)
@click.option("--build", required=True, help="Name of the build, for the table.")
@click.option("--model", default="demo", type=click.Choice(["demo", *MODELS]), show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--rounds", default=8, show_default=True)
def main(build: str, model: str, threads: int, rounds: int) -> None:
    """Print one JSON object a line for every format."""
    clock, found = time.process_time if threads == 1 else time.perf_counter, list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        if model == "demo":
            source = resolve(model)
            files = _quantised(source, Path(folder))
        else:
            source = MODELS[model]()
            files = iter([(FORMAT_OF_OTHERS, source)])
        for name, path in files:
            with closing(LlamaCpp(path, LlamaOptions(512, threads=threads))) as backend:
                slot = backend.open_slot()
                costs.sample(backend, slot)
                curve = costs.curve_of([costs.sample(backend, slot, clock) for _ in range(rounds)])
            row: Row = {"model": model, "weights": name, "threads": threads, "build": build}
            found.append(row | {f"t{size}": round(1e3 * curve(size), 2) for size in SHOWN})
    line = signature(source, "synthetic", "none", seed=0, threads=threads)
    print_json(found, line, sys.stdout)


def _quantised(source: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each of `FORMATS` with a file of the model in it."""
    for name in FORMATS:
        path = folder / f"{name}.gguf"
        quantise(source, path, name)
        yield name, path


if __name__ == "__main__":
    main()
