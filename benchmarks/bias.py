"""Table 3 and Table 4 of SSBD v2: what the bias and mask-k do.

python -m benchmarks.bias --data flores200.devtest --to de --limit 100
"""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import track

from benchmarks import common
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model
from redraft.eval.measure import Contender, Figure, Run, compare, rows
from redraft.eval.quality import quality
from redraft.eval.signature import signature
from redraft.stabilise import Mask

BETAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
MASKS = (3, 5)
WARM_UP = 5


@click.command(help=__doc__)
@common.set_option
@common.to_option
@common.model_option
@common.limit_option
@common.lag_option
@click.option("--least-words", default=0, help="Leave out shorter sources.", show_default=True)
@click.option("--masks/--no-masks", default=True, help="Rows for mask-k at beta 0.2 as well.", show_default=True)
@common.threads_option
@common.json_option
def main(
    data: str,
    to: str,
    model: str,
    limit: int,
    lag: int,
    least_words: int,
    masks: bool,
    threads: int,
    as_json: bool,
) -> None:
    """Run all rows over one stream."""
    test = common.load_set(data, to, limit, least_words)
    contenders = [
        Contender("ar", to),
        *(Contender("ssbd", to, (("beta", beta),)) for beta in BETAS),
        Contender("cd", to),
    ]
    if masks:
        # A token of the demo models is about half a word, one of the paper's models most of one: hence both units.
        for unit, display_only in (("tokens", True), ("words", True), ("tokens", False)):
            contenders += [Contender("ssbd", to, (("beta", 0.2),), Mask(k, unit, display_only)) for k in MASKS]
    backend = open_model(model, LlamaOptions(context_length=1024, slots=len(contenders), threads=threads))
    compare(backend, contenders, common.stream(test.sources[:WARM_UP], lag))
    updates = list(common.stream(test.sources, lag))
    runs = compare(backend, contenders, track(updates, data, console=Console(stderr=True), disable=as_json))
    figures = [_with_quality(row, run, test, to) for row, run in zip(rows(runs), runs, strict=True)]
    scores = quality(runs[0].finals, test.references, to).signature
    line = signature(
        backend.model.path, data, test.hash, lag=lag, segments=len(test.sources), threads=threads, metrics=scores
    )
    common.report(figures, line, as_json)


def _with_quality(row: dict[str, Figure], run: Run, test: common.TestSet, to: str) -> dict[str, Figure]:
    scores = quality(run.finals, test.references, to)
    return {**row, "bleu": round(scores.bleu, 2), "chrf": round(scores.chrf, 2)}


if __name__ == "__main__":
    main()
