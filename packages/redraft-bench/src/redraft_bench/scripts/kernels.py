"""T(n) of the demo model by format of the weights, with the installed build of llama.cpp.

Processor time of one thread, the fastest of several passes.  Another build is named by LLAMA_CPP_LIB_PATH, the folder
of its libraries.

python -m redraft_bench.scripts.kernels --build ours >> benchmarks/results/kernels.jsonl
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import click

from redraft.backends import costs
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import resolve
from redraft.backends.quantise import quantise
from redraft.decoding.cost import CostCurve
from redraft.signature import print_json, signature
from redraft_bench.eval.figures import Row

FORMATS = ("Q8_0", "BF16", "Q4_0", "Q4_K_M")
SHOWN = (1, 2, 3, 4, 6, 8, 16, 32)


@click.command(help=__doc__)
@click.option("--build", required=True, help="Name of the build, for the table.")
@click.option("--model", default="demo", help="A name or a GGUF file.")
@click.option("--rounds", default=8)
def main(build: str, model: str, rounds: int) -> None:
    """Print one JSON object a line for every format."""
    source, found = resolve(model), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            path = Path(folder) / f"{name}.gguf"
            quantise(source, path, name)
            with closing(LlamaCpp(path, LlamaOptions(512, threads=1))) as backend:
                curve = _curve(backend, rounds)
            row: Row = {"weights": name, "build": build}
            found.append(row | {f"t{size}": round(1e3 * curve(size), 2) for size in SHOWN})
    line = signature(source, "synthetic", "none", seed=0, threads=1)
    print_json(found, line, sys.stdout)


def _curve(backend: LlamaCpp, rounds: int) -> CostCurve:
    slot = backend.open_slot()
    costs.sample(backend, slot)
    return costs.least([costs.sample(backend, slot, time.thread_time) for _ in range(rounds)])


if __name__ == "__main__":
    main()
