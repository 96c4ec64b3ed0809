"""Which models with recurrent layers go back to an earlier token on llama.cpp, and what going back costs.

Tiny random models of every architecture in ``tests/hybrids.py`` are opened, which probes them
(`redraft.backends.going_back`).  Then the passes in the records of a run of `redraft bench` are played again in a slot
that goes back by anchors (`redraft.backends.llama_anchors`), with a context that computes nothing and counts.  What it
counts does not depend on weights.  Needs the repository.

python -m redraft_bench.scripts.hybrids runs/stream-talk-de.records.jsonl > benchmarks/results/hybrids.jsonl
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import click

from redraft.backends.llama_anchors import ANCHORS, AnchoredSlot
from redraft.backends.llama_context import Feed, LlamaContext
from redraft.backends.llama_model import LlamaModel
from redraft.decoding.types import Draft, Provenance, Score
from redraft.errors import CapabilityError
from redraft.signature import signature
from redraft_bench.eval.figures import Row
from redraft_bench.eval.record import Record, Step, read_records


def architectures(folder: Path) -> Iterator[Row]:
    """Yield a row for each tiny model: how it goes back, or why it is refused."""
    from tests.hybrids import HYBRIDS, write_plamo2

    for name, write in {**HYBRIDS, "PLaMo 2": write_plamo2}.items():
        path = write(folder / f"{name}.gguf")
        row: Row = {"model": name, "goes_back": "anchors", "signature": signature(path, "none", "none", seed=None)}
        try:
            LlamaModel(path, gpu_layers=0).close()
        except CapabilityError as error:
            row["goes_back"] = "refused: " + str(error).partition("correctly (")[2].partition(")")[0]
        yield row


class Nothing:
    """Stands in for a context whose sequences are never read."""

    def remove(self, sequence: int) -> None:
        """Clear a sequence."""

    def share(self, source: int, target: int) -> None:
        """Copy a sequence."""


def replayed(records: Sequence[Record]) -> Row:
    """Return what a slot with anchors reads for the passes of a contender, and what one with single cells does."""
    slot = AnchoredSlot(cast("LlamaContext", Nothing()), 0, [*range(1, 1 + ANCHORS)])
    counts = dict.fromkeys(("asked", "least", "passes", "read"), 0)
    held: tuple[int, ...] = ()
    others = count(-1, -1)  # ids that no output has
    for step in (step for record in records for step in record.steps if step.passes):
        kept = held[: min(step.passes[0].cached, step.prompt)]
        prompt = (*kept, *(next(others) for _ in range(step.prompt - len(kept))))
        for score in _scores(step, prompt, others):
            held, feed = score.prefix + score.draft.tokens, Feed()
            pieces = [len(piece) for piece in slot.read_ahead(score)]
            slot.prepare(score, feed, exact=False)
            counts["passes"] += sum(map(bool, pieces)) + 1
            counts["read"] += sum(pieces) + len(feed)
        counts["asked"] += len(step.passes)
        counts["least"] += sum(each.new for each in step.passes)
    return {**counts}


def _scores(step: Step, prompt: tuple[int, ...], others: Iterator[int]) -> Iterator[Score]:
    """Yield the requests of an update: what was accepted is in its output, and other ids stand for what was not."""
    for each in step.passes:
        done = each.cached + each.new - each.nodes - len(prompt)
        right = step.tokens[done : done + each.accepted]
        draft = (*right, *(next(others) for _ in range(each.nodes - len(right))))
        yield Score(prompt + step.tokens[:done], Draft.chain(draft, Provenance.PREVIOUS), each.prompt_rows)


@click.command(help=__doc__)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(files: tuple[Path, ...]) -> None:
    """Print one JSON object a line for every architecture, file and contender."""
    with TemporaryDirectory() as folder:
        for row in architectures(Path(folder)):
            print(json.dumps(row), flush=True)
    for file in files:
        stem = file.name.removesuffix(".records.jsonl")
        run = json.loads(file.with_name(f"{stem}.run.json").read_text(encoding="utf-8"))
        records = list(read_records(file))
        for name in run["lines"]:
            row = {"data": stem, "method": name, **replayed([each for each in records if each.contender == name])}
            print(json.dumps({**row, "signature": run["signature"]}), flush=True)


if __name__ == "__main__":
    main()
