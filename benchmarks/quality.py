"""BLEU and chrF of a model on whole sentences, by greedy decoding: the figures of the model card.

python -m benchmarks.quality --model demo
"""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import track

from benchmarks import common
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import open_model
from redraft.errors import InputError
from redraft.eval.measure import Contender, Figure, compare, rows
from redraft.eval.quality import quality
from redraft.eval.signature import signature


@click.command(help=__doc__)
@common.model_option
@click.option("--to", default=["de", "zh", "ja"], multiple=True, show_default=True)
@click.option("--data", default=list(common.SETS), multiple=True)
@click.option("--limit", default=0, help="Segments of each set; 0 takes all.", show_default=True)
@common.threads_option
@common.json_option
def main(model: str, to: tuple[str, ...], data: tuple[str, ...], limit: int, threads: int, as_json: bool) -> None:
    """One table a test set."""
    backend = open_model(model, LlamaOptions(context_length=1024, threads=threads))
    for name in data:
        for language in to:
            try:
                test = common.load_set(name, language, limit)
            except InputError:
                continue  # the set has no such language
            _measure(backend, test, language, as_json)


def _measure(backend: LlamaCpp, test: common.TestSet, language: str, as_json: bool) -> None:
    updates = list(common.stream(test.sources, 0))
    progress = track(updates, f"{test.name} {language}", console=Console(stderr=True), disable=as_json)
    run = compare(backend, [Contender("ar", language)], progress)[0]
    scores = quality(run.finals, test.references, language)
    row: dict[str, Figure] = {**rows([run])[0], "bleu": round(scores.bleu, 2), "chrf": round(scores.chrf, 2)}
    row["runaways"] = len(run.failures)
    line = signature(backend.model.path, test.name, test.hash, segments=len(test.sources), metrics=scores.signature)
    common.report([row], line, as_json)


if __name__ == "__main__":
    main()
