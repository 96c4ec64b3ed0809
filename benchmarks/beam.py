"""Greedy decoding and beam search on transformers: what the quality of the exact methods is to be compared with.

python -m benchmarks.beam --data tatoeba2021 --to de --limit 200
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from benchmarks import common
from benchmarks.decoding import prompts, text_of
from redraft.backends.hf.beam import beam_search
from redraft.backends.hf.model import open_hf
from redraft.backends.hf.options import HfOptions
from redraft.backends.load import resolve
from redraft.eval.measure import Figure
from redraft.eval.quality import quality
from redraft.eval.signature import signature
from redraft.session import longest_output
from redraft.train.export_hf import gguf_to_hf

BEAMS = (1, 5)


@click.command(help=__doc__)
@common.set_option
@common.to_option
@common.model_option
@common.limit_option
@common.threads_option
@common.json_option
def main(data: str, to: str, model: str, limit: int, threads: int, as_json: bool) -> None:
    """One line for each number of beams; one beam is greedy decoding."""
    test = common.load_set(data, to, limit)
    figures: list[dict[str, Figure]] = []
    with tempfile.TemporaryDirectory() as folder:
        gguf_to_hf(resolve(model), Path(folder))
        backend = open_hf(folder, HfOptions(context_length=1024, device="cpu", threads=threads))
        asked = prompts(backend, test.sources, to)
        for beams in BEAMS:
            texts, tokens, started = [], 0, time.perf_counter()
            for prompt in track(asked, f"{beams} beams", console=Console(stderr=True), disable=as_json):
                output = beam_search(backend, prompt, beams, longest_output(prompt))
                texts.append(text_of(backend, output))
                tokens += len(output)
            seconds = time.perf_counter() - started
            scores = quality(texts, test.references, to)
            figures.append(
                {
                    "method": "greedy" if beams == 1 else "beam search",
                    "options": f"beams={beams}",
                    "target_language": to,
                    "updates": len(texts),
                    "output_tokens": tokens,
                    "tokens_per_second": round(tokens / seconds, 1),
                    "bleu": round(scores.bleu, 2),
                    "chrf": round(scores.chrf, 2),
                }
            )
    line = signature(resolve(model), data, test.hash, backend="hf", threads=threads, metrics=scores.signature)
    common.report(figures, line, as_json)


if __name__ == "__main__":
    main()
