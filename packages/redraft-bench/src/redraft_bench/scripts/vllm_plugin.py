"""Live translation on a vLLM server: `ar`, `ssbd` over HTTP, and `ssbd` with the plug-in, for several sessions.

The model runs in 32-bit floats on a local vLLM server.  Every session translates different sentences, which grow by
three words, and sends an update as soon as the previous one is translated.  The lag of an update is the time from
sending it to its caption.  `ar` is vLLM's own streaming: a request per update, without a draft.  The ids are compared
with those of `ar` on llama.cpp, with the same weights in 32-bit floats.

export REDRAFT_VLLM_PYTHON=.venv-scale/bin/python
python -m redraft_bench.scripts.vllm_plugin > benchmarks/results/vllm_plugin.jsonl

python -m redraft_bench.scripts.vllm_plugin --model gemma --sentences 4 --sessions 1
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from rich.console import Console

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.quantise import quantise
from redraft.backends.remote.address import Address, RemoteOptions
from redraft.backends.remote.open import open_remote
from redraft.captions.events import Update
from redraft.captions.style import Style
from redraft.decoding.backend import Backend
from redraft.decoding.method import Value
from redraft.signature import print_json, signature
from redraft.translator import Translator
from redraft_bench.eval.figures import Figure
from redraft_bench.eval.sets import SETS, lag_stream, load_set
from redraft_bench.scripts.real_models import with_style
from redraft_bench.scripts.vllm_server import PYTHON_VARIABLE, VllmServer, with_drafts

NAME, LENGTH, VERSION = "served", 768, "0.32.0"
PROGRESS = Console(stderr=True)
Ids = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to translate updates.

    Attributes:
        name: its name in the table.
        method: decoding method.
        options: its options.
        plugin: whether the server verifies drafts.
        stock: whether the server runs without the plug-in's proposer, and so with vLLM's asynchronous scheduling.
    """

    name: str
    method: str
    options: dict[str, Value] = field(default_factory=dict)
    plugin: bool = False
    stock: bool = False


WAYS = (
    Way("ar, stock server", "ar", stock=True),
    Way("ssbd over HTTP, stock server", "ssbd", {"beta": 0.2}, stock=True),
    Way("ar", "ar"),
    Way("ssbd over HTTP", "ssbd", {"beta": 0.2}),
    Way("ssbd by the plug-in", "ssbd", {"beta": 0.2}, plugin=True),
    Way("ssbd by the plug-in, beta 0", "ssbd", {"beta": 0.0}, plugin=True),
)


@dataclass(slots=True)
class Session:
    """The outputs of one session, and the seconds of each update."""

    outputs: list[Ids] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Work:
    """What the sessions of all ways translate.

    Attributes:
        texts: the updates of each sentence.
        to: target language.
        sentences: number of sentences of all sessions together, at least one each.
        style: prompt style.
        greedy: for each sentence, the ids of its updates by `ar` on llama.cpp.
    """

    texts: Sequence[Sequence[Update]]
    to: str
    sentences: int
    style: Style
    greedy: Sequence[Sequence[Ids]]

    def parts(self, of_sentences: Sequence[T], sessions: int) -> list[Sequence[T]]:
        """Deal sentences, or what belongs to them, out to sessions."""
        return [of_sentences[first : max(self.sentences, sessions) : sessions] for first in range(sessions)]


@click.command(help=__doc__)
@click.option("--model", default="demo", type=click.Choice(("demo", "gemma")), show_default=True)
@click.option("--data", default="flores200.devtest", type=click.Choice(list(SETS)), show_default=True)
@click.option("--to", default="de", help="Target language: de, zh or ja.", show_default=True)
@click.option("--sessions", multiple=True, type=click.IntRange(1), default=(1, 8, 32), show_default=True)
@click.option("--sentences", default=8, help="Of all sessions together, at least one each.", show_default=True)
@click.option("--drafts", default=100, help="Draft tokens that a step of the engine verifies.", show_default=True)
@click.option("--threads", default=1, help="Of the server's engine.", show_default=True)
def main(model: str, data: str, to: str, sessions: Sequence[int], sentences: int, drafts: int, threads: int) -> None:
    """Measure, and print a row for every way and number of sessions."""
    if PYTHON_VARIABLE not in os.environ:
        raise click.ClickException(f"{PYTHON_VARIABLE} must name the interpreter of an environment with vLLM")
    stream = lag_stream(load_set(data, to, max(sentences, *sessions)), to, 3)
    texts = [list(segment.updates) for segment in stream.segments]
    rows: list[dict[str, Figure]] = []
    path, style = with_style(model, to)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "model"
        write_gemma(path, folder) if model == "gemma" else write_demo(path, folder)
        work = Work(texts, to, sentences, style, greedy(path, texts, to, style))
        for stock in (True, False):
            more = ["--max-model-len", str(LENGTH), "--max-num-seqs", str(max(sessions))]
            more += [] if stock else with_drafts(drafts)
            server = VllmServer(folder, NAME, more, {"OMP_NUM_THREADS": str(threads)})
            try:
                server.start()
                rows += measured(server, [way for way in WAYS if way.stock == stock], sessions, work)
            finally:
                server.kill()
    facts: dict[str, Any] = {
        "lag": 3,
        "sentences": sentences,
        "drafts": drafts,
        "threads": threads,
        "vllm": VERSION,
        "dtype": "float32",
    }
    print_json(rows, signature(path, data, stream.hash, **facts), sys.stdout)


def write_gemma(path: Path, folder: Path) -> None:
    """Write Gemma as a transformers folder, in 32-bit floats."""
    from redraft.backends.hf.model import open_hf
    from redraft.backends.hf.options import HfOptions

    with closing(open_hf(str(path), HfOptions(dtype="float32", device="cpu"))) as backend:
        backend.model.save_pretrained(folder)
        backend.tokenizer.base.save_pretrained(folder)


def greedy(path: Path, texts: Sequence[Sequence[Update]], to: str, style: Style) -> list[list[Ids]]:
    """Return for every sentence the ids of its updates by `ar` on llama.cpp, in 32-bit floats."""
    with tempfile.TemporaryDirectory() as folder:
        floats = Path(folder) / "F32.gguf"
        quantise(path, floats, "F32")
        with closing(LlamaCpp(floats, LlamaOptions(LENGTH, exact=True))) as backend:
            return [spoken(backend, Way("llama.cpp", "ar"), [sentence], to, style).outputs for sentence in texts]


def write_demo(path: Path, folder: Path) -> None:
    """Write the demo model as a transformers folder, in 32-bit floats."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    file = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    config, read = AutoConfig.from_pretrained(**file), AutoConfig.from_pretrained(**file)
    config.head_dim = read.head_dim = 64  # transformers does not read it from GGUF
    config.redraft = {"prompt": "{source}<2{code}>", "source_languages": "en", "target_languages": "de,zh,ja"}
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    # A model loaded from GGUF cannot be saved.
    model.load_state_dict(AutoModelForCausalLM.from_pretrained(**file, config=read, dtype=torch.float32).state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**file).save_pretrained(folder)


def measured(
    server: VllmServer, ways: Sequence[Way], sessions: Sequence[int], work: Work
) -> Iterator[dict[str, Figure]]:
    """Yield a row for every way and number of sessions on one server."""
    for count in sessions:
        exact: list[list[Ids]] = []
        llama = [[ids for sentence in part for ids in sentence] for part in work.parts(work.greedy, count)]
        for way in ways:
            run(server, way, [work.texts[number : number + 1] for number in range(min(count, 4))], work)
            load, steps, cpu = os.getloadavg()[0], server.steps(), server.cpu_seconds()
            found, seconds, requests = run(server, way, work.parts(work.texts, count), work)
            outputs = [each.outputs for each in found]
            exact = exact or outputs
            lags = [lag for each in found for lag in each.lags]
            tokens = sum(len(ids) for each in outputs for ids in each)
            row: dict[str, Figure] = {
                "way": way.name,
                "sessions": count,
                "updates": len(lags),
                "output_tokens": tokens,
                "requests": requests,
                "steps": server.steps() - steps,
                "cpu_ms_per_token": round((server.cpu_seconds() - cpu) / tokens * 1e3, 2),
                "seconds": round(seconds, 2),
                "tokens_per_second": round(tokens / seconds, 1),
                "lag_p50_ms": round(float(np.percentile(lags, 50)) * 1e3, 1),
                "lag_p95_ms": round(float(np.percentile(lags, 95)) * 1e3, 1),
                "differ_from_ar": differing(exact, outputs),
                "differ_from_llama": differing(llama, outputs),
                "load_before": round(load, 1),
            }
            PROGRESS.print(row)
            yield row


def differing(first: Sequence[Sequence[Ids]], second: Sequence[Sequence[Ids]]) -> int:
    """Return the number of updates with different ids."""
    return sum(a != b for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True))


def run(
    server: VllmServer, way: Way, parts: Sequence[Sequence[Sequence[Update]]], work: Work
) -> tuple[list[Session], float, int]:
    """Run all sessions at once; return their results, the total seconds and the number of requests."""
    options = RemoteOptions(LENGTH, plugin=way.plugin, timeout=600)
    with ExitStack() as stack:
        backends = open_remote(Address.parse(server.model), options, count=len(parts))
        for backend in backends:
            stack.enter_context(closing(backend))
        if any(backend.dialect.verifies != way.plugin for backend in backends):
            raise click.ClickException(f"the server does not run as {way.name!r} needs it")
        before = sum(backend.client.requests for backend in backends)
        threads = stack.enter_context(ThreadPoolExecutor(len(parts)))
        started = time.perf_counter()
        found = list(
            threads.map(lambda backend, part: spoken(backend, way, part, work.to, work.style), backends, parts)
        )
        seconds = time.perf_counter() - started
        return found, seconds, sum(backend.client.requests for backend in backends) - before


def spoken(backend: Backend, way: Way, part: Sequence[Sequence[Update]], to: str, style: Style) -> Session:
    """Run one session."""
    session = Session()
    with Translator(backend, [to], method=way.method, options=way.options, hold_back=False, style=style) as translator:
        for sentence in part:
            for update in sentence:
                started = time.perf_counter()
                translator.translate(update)
                session.lags.append(time.perf_counter() - started)
                session.outputs.append(translator.translation(to).output)
    return session


if __name__ == "__main__":
    main()
