"""Quality of greedy decoding and beam search on transformers, to compare the exact methods with.

python -m benchmarks.beam --data tatoeba2021 --to de --limit 200
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.progress import track

from recipe.export_hf import gguf_to_hf
from redraft.backends.hf.base import HfBackend
from redraft.backends.hf.model import open_hf
from redraft.backends.hf.options import HfOptions
from redraft.backends.load import resolve
from redraft.captions.languages import parse_language
from redraft.captions.prompt import Prompter, Request
from redraft.decoding.loops import longest_output
from redraft.decoding.types import Prompt
from redraft.signature import print_json, signature
from redraft_bench.eval.figures import Row
from redraft_bench.eval.quality import quality
from redraft_bench.eval.sets import SETS, load_set
from redraft_bench.eval.table import print_table

BEAMS = (1, 5)


@click.command(help=__doc__)
@click.option("--data", default="tatoeba2021", type=click.Choice(list(SETS)), show_default=True)
@click.option("--to", default="de", help="Target language: de, zh or ja.", show_default=True)
@click.option("--model", default="demo", help="A name or a GGUF file.", show_default=True)
@click.option("--limit", default=100, help="Segments; 0 takes all.", show_default=True)
@click.option("--threads", default=0, help="CPU threads; 0 takes all cores.", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def main(data: str, to: str, model: str, limit: int, threads: int, as_json: bool) -> None:
    """Print a line for each number of beams; one beam is greedy decoding."""
    test = load_set(data, to, limit)
    figures: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        gguf_to_hf(resolve(model), Path(folder))
        backend = open_hf(folder, HfOptions(context_length=1024, device="cpu", threads=threads))
        prompter = Prompter.for_model(backend.metadata, parse_language("en"), parse_language(to))
        asked = [Prompt(prompter.encode(Request(source), backend.encode)) for source in test.sources]
        for beams in BEAMS:
            texts, tokens, started = [], 0, time.perf_counter()
            for prompt in track(asked, f"{beams} beams", console=Console(stderr=True), disable=as_json):
                output = beam_search(backend, prompt, beams, longest_output(prompt))
                texts.append(b"".join(map(backend.token_bytes, output)).decode(errors="replace").strip())
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
    if as_json:
        print_json(figures, line, sys.stdout)
    else:
        print_table(figures, line, Console())


@torch.inference_mode()
def beam_search(backend: HfBackend, prompt: Prompt, beams: int, limit: int) -> tuple[int, ...]:  # type: ignore[type-arg]
    """Return the output ids of the best of ``beams`` hypotheses, at most ``limit``, without the end token."""
    read = torch.tensor([prompt.ids], device=backend.device)
    inputs = {"input_ids": read, "attention_mask": torch.ones_like(read)}
    if prompt.encoder:
        source = torch.tensor([prompt.encoder], device=backend.device)
        inputs = {"input_ids": source, "attention_mask": torch.ones_like(source), "decoder_input_ids": read}
        # The prompt already has the start token and the target's code, which ``generate`` would add again.
        inputs |= {"decoder_start_token_id": prompt.ids[0], "forced_bos_token_id": None}
    found = backend.model.generate(
        **inputs,
        num_beams=beams,
        do_sample=False,
        max_new_tokens=limit,
        eos_token_id=sorted(backend.end_tokens),
        pad_token_id=backend.pad_token,
    )[0, len(prompt.ids) :].tolist()
    end = next((place for place, token in enumerate(found) if token in backend.end_tokens), len(found))
    return tuple(found[:end])


if __name__ == "__main__":
    main()
