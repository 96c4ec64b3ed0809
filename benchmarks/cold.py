"""Every decoder of the papers on whole sentences, cold: quality, target passes, mean acceptance length, time.

python -m benchmarks.cold --data flores200.devtest --to de --limit 200
"""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console
from rich.progress import track

from benchmarks import common
from benchmarks.decoding import Entry, prompts, rows, run
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import BRANCHES_OF_A_TREE, open_model, resolve
from redraft.eval.quality import quality
from redraft.eval.signature import signature

WARM_UP = 3


def entries(methods: Sequence[str] = ()) -> list[Entry]:
    """The lines of the table, or those of some methods only; `ar` first, which the ratios are over."""
    table = [
        Entry.named("ar"),
        Entry.named("jacobi", stopping="paper"),
        Entry.named("jacobi"),
        Entry.named("gs-jacobi", block=3, stopping="paper"),
        Entry.named("gs-jacobi", block=5, stopping="paper"),
        Entry.named("gs-jacobi", block=3),
        Entry.named("gs-jacobi", block=5),
        Entry.named("gs-jacobi", block=3, start="source"),
        Entry.named("hybrid-jacobi", block=3, stopping="paper"),
        Entry.named("pld"),
        Entry.named("aasd"),
        Entry.named("aasd", verification="exact"),
        Entry.named("bild", fallback=0.6, rollback=2),
        Entry.named("bild", fallback=0.8, rollback=1),
        Entry.named("speculative-sampling", temperature=0),
    ]
    return [entry for entry in table if not methods or entry.method.name in ("ar", *methods)]


@click.command(help=__doc__)
@common.set_option
@common.to_option
@common.model_option
@click.option("--small", default="demo-small", help="The small model of BiLD.", show_default=True)
@common.limit_option
@common.threads_option
@click.option("--exact/--usual", default=True, help="Kernels whose batched and single passes are bit-equal, or not.")
@click.option("--method", "methods", multiple=True, help="Rows of these methods only, beside `ar`; repeat.")
@common.json_option
def main(
    data: str,
    to: str,
    model: str,
    small: str,
    limit: int,
    threads: int,
    exact: bool,
    methods: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run all lines over the same sentences."""
    test = common.load_set(data, to, limit)
    options = LlamaOptions(context_length=1024, threads=threads, branches=BRANCHES_OF_A_TREE, exact=exact)
    target, little = open_model(model, options), open_model(small, options)
    asked = prompts(target, test.sources, to)
    run(entries(methods), target, little, asked[:WARM_UP])
    table = entries(methods)
    run(table, target, little, track(asked, data, console=Console(stderr=True), disable=as_json))
    figures = rows(table, test.references, to)
    scores = quality(test.references, test.references, to).signature
    line = signature(
        resolve(model),
        data,
        test.hash,
        small=common.model_signature(small),
        threads=threads,
        exact=exact,
        metrics=scores,
    )
    common.report(figures, line, as_json)


if __name__ == "__main__":
    main()
