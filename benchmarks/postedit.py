"""AASD where much is copied: post-editing, with a draft translation by another model in the prompt.

python -m benchmarks.postedit --data tatoeba2021 --to de --limit 200

The demo models take no instructions.  But they carry earlier sentences with their translations in the prompt, so the
source is given twice, and the draft translation stands where the first one's translation would: the model translates
the sentence again and sees the draft.  The rows are those of AASD's Tables 2, 4 and 5, with prompt lookup beside them.
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
from redraft.types import Backend

PLAIN = "benchmarks/models/redraft-plain-q8_0.gguf"


def entries() -> list[Entry]:
    """The lines of the table; `ar` first, which the ratios are over."""
    return [
        Entry.named("ar"),
        Entry.named("pld"),
        Entry.named("aasd"),
        Entry.named("aasd", width=0),
        Entry.named("aasd", verification="exact"),
        Entry.named("aasd", verification="threshold"),
        Entry.named("aasd", verification="top-k"),
        Entry.named("aasd", end_guard="on"),
    ]


def translations(backend: Backend, sources: Sequence[str], to: str) -> list[str]:
    """Greedy translations."""
    entry = Entry.named("ar")
    run([entry], backend, None, track(prompts(backend, sources, to), "drafts", console=Console(stderr=True)))
    return [entry.text(index) for index in range(len(sources))]


def overlap(prompt: Sequence[int], output: Sequence[int]) -> float:
    """Longest common subsequence of prompt and output over the output's length, 0-1 (AASD, equation 7)."""
    best = [0] * (len(output) + 1)
    for token in prompt:
        diagonal = 0
        for place, other in enumerate(output, 1):
            diagonal, best[place] = best[place], diagonal + 1 if token == other else max(best[place], best[place - 1])
    return best[-1] / len(output) if output else 0.0


@click.command(help=__doc__)
@common.set_option
@common.to_option
@common.model_option
@click.option("--drafts", default=PLAIN, help="The model that makes the draft translations.", show_default=True)
@common.limit_option
@common.threads_option
@common.json_option
def main(data: str, to: str, model: str, drafts: str, limit: int, threads: int, as_json: bool) -> None:
    """Run all lines over the same prompts."""
    test = common.load_set(data, to, limit)
    options = LlamaOptions(context_length=1024, threads=threads, branches=BRANCHES_OF_A_TREE)
    other = open_model(drafts, options)
    draft_texts = translations(other, test.sources, to)
    other.close()
    target = open_model(model, options)
    asked = prompts(target, test.sources, to, draft_texts)
    run(entries(), target, None, asked[:3])
    table = entries()
    run(table, target, None, track(asked, data, console=Console(stderr=True), disable=as_json))
    figures = rows(table, test.references, to)
    shares = [overlap(prompt.ids, output.tokens) for prompt, output in zip(asked, table[0].outputs, strict=True)]
    draft_scores = quality(draft_texts, test.references, to)
    line = signature(
        resolve(model),
        data,
        test.hash,
        drafts=f"{common.model_signature(drafts)},chrF={draft_scores.chrf:.1f}",
        overlap=f"{sum(shares) / len(shares):.2f}",
        threads=threads,
        metrics=draft_scores.signature,
    )
    common.report(figures, line, as_json)


if __name__ == "__main__":
    main()
