"""With beta = 0, SSBD gives the ids of greedy re-translation.  Every mismatch is looked into.

In 32-bit floats there should be none.  With quantised weights a batched pass differs from single ones in the last bits;
a mismatch is explained where the two best tokens of the first different position lie within rounding of each other.

python -m benchmarks.exact --to de --limit 200 --format F32 --exact
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from benchmarks import common
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import resolve
from redraft.backends.quantise import quantise
from redraft.eval.measure import Contender, Run, compare
from redraft.eval.signature import signature
from redraft.types import ROOT, Score, common_prefix

#: Largest difference of the two best log-probabilities that rounding explains, by format of the weights.
NEAR_TIE = {"F32": 1e-4, "shipped": 0.15}


@click.command(help=__doc__)
@common.set_option
@common.to_option
@common.model_option
@common.limit_option
@common.lag_option
@click.option("--format", default="F32", type=click.Choice(list(NEAR_TIE)), show_default=True)
@click.option("--exact", is_flag=True, help="The engine's bit-equal kernels.")
@common.threads_option
def main(data: str, to: str, model: str, limit: int, lag: int, format: str, exact: bool, threads: int) -> None:
    """Compare after every update; one JSON object."""
    test = common.load_set(data, to, limit)
    with tempfile.TemporaryDirectory() as folder:
        path = resolve(model)
        if format != "shipped":
            path = Path(folder) / f"{path.stem}-{format}.gguf"
            quantise(resolve(model), path, format)
        backend = LlamaCpp(path, LlamaOptions(context_length=1024, slots=3, threads=threads, exact=exact))
        contenders = [Contender("ar", to), Contender("ssbd", to, (("beta", 0.0),))]
        updates = list(common.stream(test.sources, lag))
        runs = compare(backend, contenders, track(updates, to, console=Console(stderr=True)))
        gaps = mismatches(backend, *runs)
        line = signature(path, data, test.hash, lag=lag, segments=len(test.sources), threads=threads, exact=exact)
        backend.close()
    unexplained = [gap for gap in gaps if gap > NEAR_TIE[format]]
    row = {
        "target_language": to,
        "updates": len(updates),
        "output_tokens": sum(map(len, runs[0].outputs)),
        "mismatches": len(gaps),
        "unexplained": len(unexplained),
        "largest_gap": round(max(gaps, default=0.0), 5),
        "passes": [run.passes for run in runs],
    }
    print(json.dumps({**row, "signature": line}))
    raise SystemExit(1 if unexplained else 0)


def mismatches(backend: LlamaCpp, plain: Run, drafted: Run) -> list[float]:
    """For every update whose ids differ: how far apart the two best tokens are where they first do, in nats."""
    gaps = []
    slot = backend.open_slot()
    for prompt, first, second in zip(plain.prompts, plain.outputs, drafted.outputs, strict=True):
        if first != second:
            shared = common_prefix(first, second)
            rows = backend.score([(slot, Score(prompt + first[:shared]))])[0]
            best, other = rows.top_k(ROOT, 2)
            gaps.append(best[1] - other[1])
    backend.close_slot(slot)
    return gaps


if __name__ == "__main__":
    main()
