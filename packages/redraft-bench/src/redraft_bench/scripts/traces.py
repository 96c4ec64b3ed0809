"""Record the passes of methods on a stream, for `redraft_bench.scripts.gpu`.

Each method is named with its options, such as ``"ssbd beta=0.2"``; words are not held back.

python -m redraft_bench.scripts.traces --model qwen-0.5b --data talk --to de --limit 8 traces.jsonl.gz
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import BRANCHES_OF_A_TREE
from redraft.captions.style import Style
from redraft.decoding.backend import Capability
from redraft.decoding.method import Value
from redraft.decoding.methods import all_methods
from redraft_bench.bench.data import open_stream
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.retranslate import Task
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import MethodSystem, System
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.trace import Recorder, Trace, read_traces, write_traces
from redraft_bench.scripts.real_models import with_style

METHODS = ("ar", "local-agreement n=2", "ssbd beta=0.2", "redraft")


@click.command(help=__doc__)
@click.option("--model", default="demo", help="A name, or a GGUF file.", show_default=True)
@click.option("--data", default="talk", help="As for `redraft bench run`.", show_default=True)
@click.option("--to", multiple=True, default=("de",), help="Target language; repeatable.")
@click.option("--limit", default=8, help="Utterances; 0 takes all.", show_default=True)
@click.option("--method", multiple=True, default=METHODS, help="Name and options; repeatable.")
@click.option("--label", help="Another name for the method, if there is only one.")
@click.option("--append", is_flag=True, help="Keep what is in the file.")
@click.argument("out", type=click.Path(path_type=Path))
def main(
    model: str,
    data: str,
    to: Sequence[str],
    limit: int,
    method: Sequence[str],
    label: str | None,
    append: bool,
    out: Path,
) -> None:
    """Record all methods on every language."""
    found = read_traces(out) if append and out.exists() else []
    for language in to:
        stream = open_stream(data, language, limit=limit)
        path, style = with_style(model, language)
        for trace in recorded(path, style, stream, language, method):
            trace = replace(trace, model=model, method=label or trace.method)
            found.append(trace)
            write_traces(out, found)


def recorded(path: Path, style: Style, stream: Stream, language: str, methods: Sequence[str]) -> Iterator[Trace]:
    """Yield the trace of every method, each on a cache of its own."""
    for named in methods:
        method, *settings = named.split()
        contender = Contender(method, language, tuple(_option(each) for each in settings))
        known = all_methods().get(method)
        branches = BRANCHES_OF_A_TREE if known and Capability.TREES in known.needs else 0
        started = time.perf_counter()
        with closing(LlamaCpp(path, LlamaOptions(2048, branches=branches, threads=1))) as backend:
            recorder = Recorder(backend)
            updates = _updates(recorder, _system(recorder, contender, style), stream)
        trace = Trace(path.stem, stream.name, language, named, updates)
        passes, seconds = sum(map(len, updates)), time.perf_counter() - started
        Console(stderr=True).print(f"{language}, {named}: {len(updates)} updates, {passes} passes, {seconds:.0f} s")
        yield trace


def _option(text: str) -> tuple[str, Value]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        return name, value


def _system(recorder: Recorder, contender: Contender, style: Style) -> System:
    if contender.method == "local-agreement":
        task = Task(recorder, contender.language, contender.max_tokens, style.prompt)  # type: ignore[arg-type]
        return LocalAgreement(task, int(dict(contender.options).get("n", 2)))
    return MethodSystem(recorder, contender, style)  # type: ignore[arg-type]


def _updates(recorder: Recorder, system: System, stream: Stream) -> tuple[tuple, ...]:  # type: ignore[type-arg]
    found = []
    for update in stream.updates:
        system.translate(update)
        found.append(recorder.take())
    system.close()
    return tuple(found)


if __name__ == "__main__":
    main()
