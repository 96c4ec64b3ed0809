"""Estimate the cost of recorded passes under the cost curve T(n) of other weights, and the possible gain from guesses.

"Free guesses" are the passes of redraft-tree, with the first one of an update priced without its guesses and each later
one as a single token: no drafter with the same guesses can be faster.  T(n) is measured in process time of one thread,
with the formats taking turns; the line `flat` is a curve on which all passes cost the same.

python -m benchmarks.curves --records runs/ssbd-flores200.devtest-de.records.jsonl --format Q8_0 --format BF16
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import click
from rich.progress import track

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import resolve
from redraft.backends.quantise import FORMATS, quantise
from redraft.decoding.cost import CostCurve, least, sample
from redraft.signature import print_json, signature, text_hash
from redraft_bench.eval.record import Step, read_records

SHIPPED = "as it is"
FLAT = CostCurve((1, 2), (1.0, 1.0))
#: Numbers of new tokens whose cost is shown, relative to one token.
SHOWN = (2, 4, 8, 24)
ROUNDS = 9

Passes = Mapping[tuple[int, int], Step]


@click.command(help=__doc__)
@click.option("--records", type=click.Path(exists=True, path_type=Path), required=True, help="Of the table ssbd.")
@click.option("--model", "models", multiple=True, default=["demo"], help="A name or a GGUF file; repeat.")
@click.option("--format", "formats", multiple=True, type=click.Choice([*FORMATS, SHIPPED]), default=[SHIPPED])
def main(records: Path, models: Sequence[str], formats: Sequence[str]) -> None:
    """Measure T(n), then compute the costs."""
    lines = ("ar,", "ssbd beta=0.2,", "redraft-tree beta=0.2 cost=flat,")
    ar, ssbd, tree = (dict(_steps(records, line)) for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        curves = {"flat": FLAT, **_measured(Path(folder), models, formats)}
    both = [key for key in ssbd if key in ar and key in tree]
    rows = []
    for name, curve in curves.items():
        plain, drafted, guessed = (sum(_cost(run[key], curve) for key in both) for run in (ar, ssbd, tree))
        free = sum(_with_free_guesses(ssbd[key], tree[key], curve) for key in both)
        rows.append(
            {
                "weights": name,
                **{f"t{size}_over_t1": round(curve(size) / curve(1), 2) for size in SHOWN},
                "ssbd_over_ar": round(plain / drafted, 2),
                "tree_over_ssbd": round(drafted / guessed, 2),
                "free_guesses_over_ssbd": round(drafted / free, 2),
                "updates": len(both),
            }
        )
    print_json(
        rows,
        signature(resolve(models[0]), records.name, text_hash(records.read_text("utf-8")), threads=1),
        sys.stdout,
    )


def _steps(records: Path, line: str) -> Iterator[tuple[tuple[int, int], Step]]:
    """Yield the updates of a table's line that had passes, by segment and number."""
    for record in read_records(records):
        if record.contender.startswith(line) and "hides" not in record.contender:
            yield from (((record.segment, step.seq), step) for step in record.steps if step.passes)


def _measured(folder: Path, models: Sequence[str], formats: Sequence[str]) -> dict[str, CostCurve]:
    """Measure T(n) of every model in every format."""
    with ExitStack() as stack:
        opened = {}
        for path in map(resolve, models):
            for weights in formats:
                name, file = f"{path.stem} {weights}", path
                if weights != SHIPPED:
                    file = folder / f"{path.stem}-{weights}.gguf"
                    quantise(path, file, weights)
                backend = stack.enter_context(closing(LlamaCpp(file, LlamaOptions(context_length=512, threads=1))))
                opened[name] = backend, backend.open_slot()
        samples: dict[str, list[list[float]]] = {name: [] for name in opened}
        for _ in track(range(ROUNDS), "measuring", transient=True):
            for name, (backend, slot) in opened.items():
                samples[name].append(sample(backend, slot, time.process_time))
        return {name: least(found[1:]) for name, found in samples.items()}


def _cost(step: Step, curve: CostCurve) -> float:
    return sum(curve(each.new) for each in step.passes)


def _with_free_guesses(ssbd: Step, tree: Step, curve: CostCurve) -> float:
    return curve(ssbd.passes[0].new) + (len(tree.passes) - 1) * curve(1)


if __name__ == "__main__":
    main()
