"""BiLD's trade-off of quality and time over its two thresholds (Figures 4 and 10), unaligned and aligned.

python -m benchmarks.tradeoff --data tatoeba2021 --to de --limit 100 --json >> benchmarks/results/bild-tatoeba-de.jsonl
"""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import track

from benchmarks import common
from benchmarks.decoding import Entry, prompts, rows, run
from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_model, resolve
from redraft.eval.quality import quality
from redraft.eval.signature import signature

#: Section 7.1.2: fallback thresholds of 0.5 to 0.9, rollback thresholds of 1 to 10.
FALLBACKS = (0.5, 0.6, 0.7, 0.8, 0.9)
ROLLBACKS = (1.0, 2.0, 5.0, 10.0)


@click.command(help=__doc__)
@common.set_option
@common.to_option
@common.model_option
@click.option("--small", multiple=True, default=("demo-small",), help="A small model; repeat.", show_default=True)
@common.limit_option
@common.threads_option
@common.json_option
def main(data: str, to: str, model: str, small: tuple[str, ...], limit: int, threads: int, as_json: bool) -> None:
    """One curve for each small model; the ratios are over `ar` in the same run."""
    test = common.load_set(data, to, limit)
    options = LlamaOptions(context_length=1024, threads=threads)
    target = open_model(model, options)
    asked = prompts(target, test.sources, to)
    for name in small:
        little = open_model(name, options)
        table = [
            Entry.named("ar"),
            *(Entry.named("bild", fallback=each, rollback=bound) for each in FALLBACKS for bound in ROLLBACKS),
        ]
        run(table, target, little, track(asked, name, console=Console(stderr=True), disable=as_json))
        little.close()
        figures = rows(table, test.references, to)
        for row in figures:
            row["small_model"] = resolve(name).stem
        metrics = quality(test.references, test.references, to).signature
        line = signature(
            resolve(model), data, test.hash, small=common.model_signature(name), threads=threads, metrics=metrics
        )
        common.report(figures, line, as_json)


if __name__ == "__main__":
    main()
