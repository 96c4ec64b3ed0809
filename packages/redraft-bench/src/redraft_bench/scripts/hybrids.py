"""Which models with recurrent layers go back to an earlier token on llama.cpp, and what going back costs.

Tiny random models of every architecture in ``tests/hybrids.py`` are opened, which probes them
(`redraft.backends.probe`).  Then the passes in the records of a run of `redraft bench` are played again in a slot
that goes back by anchors (`redraft.backends.llama_slot`), with a context that computes nothing and counts.  What it
counts does not depend on weights.  With --updates, so many of each contender in --method are also timed, on a model of
0.9 GB with random weights in the shape of Qwen3.5 0.8B.  Needs the repository.

python -m redraft_bench.scripts.hybrids --updates 40 runs/stream-talk-de.records.jsonl > hybrids.jsonl
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import click

from redraft.backends.llama_context import LlamaContext
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llama_slot import ANCHORS, AnchoredSlot
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.errors import CapabilityError
from redraft.signature import signature
from redraft_bench.eval.figures import Row
from redraft_bench.eval.replay import Trace, read_traces

#: The shape whose passes are timed.
SHAPE = "Qwen3.5 0.8B"


def architectures(folder: Path) -> Iterator[Row]:
    """Yield a row for each tiny model: how it goes back, or why it is refused."""
    from tests.hybrids import HYBRIDS, REFUSED

    for name, write in {**HYBRIDS, **REFUSED}.items():
        path = write(folder / f"{name}.gguf")
        row: Row = {"model": name, "goes_back": "anchors", "signature": signature(path, "none", "none", seed=None)}
        try:
            LlamaModel(path, LlamaOptions(gpu_layers=0)).close()
        except CapabilityError as error:
            row["goes_back"] = "refused: " + str(error).partition("correctly (")[2].partition(")")[0]
        yield row


class Nothing:
    """Stands in for a context whose sequences are never read."""

    def remove(self, sequence: int) -> None:
        """Clear a sequence."""

    def share(self, source: int, target: int) -> None:
        """Copy a sequence."""


def replayed(trace: Trace) -> Row:
    """Return what a slot with anchors reads for the passes of a contender, and what one with single cells does."""
    slot = AnchoredSlot(cast("LlamaContext", Nothing()), 0, [*range(1, 1 + ANCHORS)])
    asked = [each for step in trace.steps for each in step.passes]
    counts = {"asked": len(asked), "least": sum(each.new for each in asked), "passes": 0, "read": 0}
    for score in (score for scores in trace.updates for score in scores):
        pieces = [len(piece) for piece in slot.read_ahead(score)]
        feed = slot.prepare(score)
        counts["passes"] += sum(map(bool, pieces)) + 1
        counts["read"] += sum(pieces) + len(feed)
    return {**counts}


def timed(backend: LlamaCpp, trace: Trace, updates: int) -> Row:
    """Return the mean processor time of the first updates of a contender in ms, on another model."""
    done = [scores for scores in trace.updates if scores][:updates]
    slot, started = backend.open_slot(), time.process_time()
    for score in (score for scores in done for score in scores):
        backend.score([(slot, score)])
    seconds = time.process_time() - started
    backend.close_slot(slot)
    return {"timed": len(done), "milliseconds": round(1e3 * seconds / len(done), 1)}


@contextmanager
def shape() -> Iterator[LlamaCpp]:
    """Open a random model in the shape of Qwen3.5 0.8B on one thread."""
    from tests.hybrids import write_qwen_of_size

    with TemporaryDirectory() as folder:
        path = write_qwen_of_size(Path(folder) / f"{SHAPE}.gguf")
        with closing(LlamaCpp(path, LlamaOptions(1024, threads=1, gpu_layers=0))) as backend:
            yield backend


@click.command(help=__doc__)
@click.option("--updates", default=0, help="Updates of each contender that are timed.", show_default=True)
@click.option("--method", multiple=True, default=("ar", "ssbd", "redraft"), help="Time its first line; repeatable.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(files: tuple[Path, ...], updates: int, method: tuple[str, ...]) -> None:
    """Print one JSON object a line for every architecture, file and contender."""
    with TemporaryDirectory() as folder:
        for row in architectures(Path(folder)):
            print(json.dumps(row), flush=True)
    with shape() if updates else nullcontext() as backend:
        for file in files:
            left = {*method}
            for trace in read_traces(file, backend.vocabulary_size if backend else 0):
                row = {"data": file.name.removesuffix(".records.jsonl"), "method": f"{trace.method}, {trace.language}"}
                row |= replayed(trace)
                name = re.split("[ ,]", trace.method)[0]
                if backend and name in left:  # the first line of a method
                    left.remove(name)
                    row |= {"shape": SHAPE, **timed(backend, trace, updates)}
                print(json.dumps({**row, "signature": trace.signature}), flush=True)


if __name__ == "__main__":
    main()
