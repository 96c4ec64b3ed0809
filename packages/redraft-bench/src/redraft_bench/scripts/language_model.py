"""Measure methods on a real language model that was not made for Redraft (`redraft_bench.scripts.real_models`).

Gemma 3 270M, a base model, translates by three examples in the prompt, and others by their chat template.  Times are
processor times of one thread, of everything that an update takes, and so is T(n), by which the limit is computed.  The
languages take turns, sentence by sentence.  After every turn --out and --records are written, so a run that is stopped
has figures for the sentences that it has finished, and the same command goes on with the next.

The weights are in the extra ``model-tests``.

python -m redraft_bench.scripts.language_model --records runs/gemma.jsonl --out benchmarks/results/language_model.jsonl
python -m redraft_bench.scripts.language_model --model qwen-1.5b --small qwen-0.5b --minutes 600
    --records runs/qwen-1.5b.jsonl --out runs/qwen-1.5b.rows.jsonl
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import click
from rich.console import Console

from redraft.backends import costs
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.load import BRANCHES_OF_A_TREE
from redraft.captions.events import Failure, Update
from redraft.captions.style import Style
from redraft.decoding.backend import Capability
from redraft.decoding.cost import CostCurve
from redraft.decoding.methods import get_method
from redraft.decoding.types import Rows, Score
from redraft.signature import model_label, signature
from redraft_bench.bench.data import open_stream, reveals
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.retranslate import Task
from redraft_bench.eval.bootstrap import interval
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import Row, lines, rows
from redraft_bench.eval.limit import SHARES, shares
from redraft_bench.eval.measure import MethodSystem, Run, System, compare
from redraft_bench.eval.quality import quality, statistics
from redraft_bench.eval.record import Step, read_records, replace_records
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.table import print_table
from redraft_bench.scripts.real_models import MODELS, example_prompt, with_style

LOCAL_AGREEMENT = "local-agreement"
METHODS: tuple[tuple[str, dict[str, float | str]], ...] = (
    ("ar", {}),
    (LOCAL_AGREEMENT, {"n": 2}),
    ("ssbd", {"beta": 0.2}),
    ("redraft", {}),
    ("cd", {}),
    ("pld", {}),
    ("aasd", {}),
)
#: Methods with a small model: alone, after the previous output, and with exact acceptance.
SMALL_METHODS: tuple[tuple[str, dict[str, float | str]], ...] = (
    ("bild", {}),
    ("ssbd-bild", {"beta": 0.2}),
    ("speculative-sampling", {"temperature": 0.0}),
)
SHOWN = (
    *("target_language", "method", "draft_acceptance", "target_passes", "pass_speedup", "cpu_seconds", "speedup"),
    *("model_share", "limit_distance", "ne_output", "ne_display", "chrf"),
)
#: Samples of T(n).
SAMPLES = 3
#: Tokens of context for each method and language.
CONTEXT = 512


class Processor(LlamaCpp):
    """The backend, which counts the processor time of its passes."""

    seconds = 0.0

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests, and count the time."""
        started = time.process_time()
        try:
            return super().score(requests)
        finally:
            self.seconds += time.process_time() - started


class ProcessorTimed(MethodSystem):
    """A method, with processor times instead of wall times."""

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Translate one update."""
        backend = self.translator.backend
        assert isinstance(backend, Processor)  # noqa: S101 - made below
        passes = backend.seconds
        step, failures = super().translate(update)
        return replace(step, seconds=step.cpu_seconds, model_seconds=backend.seconds - passes), failures


class AgreementTimed(LocalAgreement):
    """LocalAgreement, with processor times instead of wall times."""

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Translate one update."""
        step, failures = super().translate(update)
        return replace(step, seconds=step.cpu_seconds, model_seconds=step.cpu_seconds), failures


@dataclass(frozen=True, slots=True)
class Files:
    """The model and its small model, if there is one; a model without chat template is prompted by examples."""

    name: str
    model: Path
    small: Path | None
    by_examples: bool
    chosen: tuple[str, ...] = ()

    @classmethod
    def named(cls, model: str, small: str | None, chosen: tuple[str, ...] = ()) -> Self:
        """Find models by the names on the command line; without chosen methods, all are compared."""
        path, style = with_style(model, "de")
        return cls(model, path, None if small is None else with_style(small, "de")[0], style.prompt is not None, chosen)

    @property
    def methods(self) -> tuple[tuple[str, dict[str, float | str]], ...]:
        """The methods to compare, with their options; always `ar`, which the others are compared with."""
        found = METHODS if self.small is None else METHODS + SMALL_METHODS
        return tuple(each for each in found if not self.chosen or each[0] in ("ar", *self.chosen))


@dataclass(frozen=True, slots=True)
class Into:
    """The runs of all methods into one language."""

    language: str
    stream: Stream
    runs: list[Run]

    def rows(self, curve: CostCurve) -> list[Row]:
        """Return the figures of the segments so far."""
        done = len(self.runs[0].records)
        found = rows(lines(self.runs), self._under_load(curve))
        references = [segment.references.get(self.language, "") for segment in self.stream.segments[:done]]
        for row, run in zip(found, self.runs, strict=True):
            pairs = [
                pair for pair in zip((each.translation for each in run.records), references, strict=True) if pair[1]
            ]
            row["data"], row["metrics"] = self.stream.name, "none"
            if pairs:
                row |= self._quality(*zip(*pairs, strict=True))
            for name, share in zip(SHARES, shares(run.records, curve), strict=True):
                row[name] = round(share, 3)
        return found

    def _quality(self, texts: Sequence[str], references: Sequence[str]) -> Row:
        """Return chrF with its interval, and how it was computed."""
        scores = quality(texts, references, self.language)
        low, high = interval(*statistics(texts, references, self.language)["chrf"])
        found = zip(("chrf", "chrf_low", "chrf_high"), (scores.chrf, low, high), strict=True)
        return {**{name: round(each, 2) for name, each in found}, "metrics": scores.signature}

    def _under_load(self, curve: CostCurve) -> CostCurve:
        """Return T(n), scaled so that it gives the time of `ar`: it may have been measured beside less other load."""
        [plain] = [run.records for run in self.runs if run.contender.method == "ar"]
        passes = [each.new for record in plain for step in record.steps for each in step.passes]
        factor = sum(record.seconds for record in plain) / sum(map(curve, passes))
        return replace(curve, seconds=tuple(factor * each for each in curve.seconds))


@click.command(help=__doc__)
@click.option("--data", default="flores200.devtest", help="As for `redraft bench run`.", show_default=True)
@click.option("--to", multiple=True, default=("de", "zh", "ja"), help="Target language; repeatable.")
@click.option("--limit", default=40, help="Segments; 0 takes all.", show_default=True)
@click.option("--minutes", default=8.0, help="Minutes of processor time after which no turn begins.")
@click.option("--model", default="gemma", help=f"One of {', '.join(MODELS)}, or a GGUF file.", show_default=True)
@click.option("--small", help="Small model for BiLD, likewise.")
@click.option("--method", multiple=True, help="A method beside `ar`; repeatable. All by default.")
@click.option("--records", type=click.Path(path_type=Path), help="File of an earlier run, which this one continues.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("language_model.jsonl"), help="File for the rows.")
def main(
    data: str,
    to: tuple[str, ...],
    limit: int,
    minutes: float,
    model: str,
    small: str | None,
    method: tuple[str, ...],
    records: Path | None,
    out: Path,
) -> None:
    """Run all methods on every language."""
    console, files = Console(stderr=True), Files.named(model, small, method)
    streams = {language: open_stream(data, language, limit=limit) for language in to}
    with opened(files, streams) as (languages, curve):
        runs = [run for each in languages for run in each.runs]
        done = _continue(runs, records) if records and records.exists() else 0
        if done:
            _write(out, files, languages, curve)
        end = time.process_time() + 60 * minutes
        for number in range(done, len(languages[0].stream.segments)):
            if time.process_time() > end:
                break
            for each in languages:
                compare(each.runs, each.stream.segments[number].updates, segment=number)
            if records:
                replace_records(records, (record for run in runs for record in run.records))
            _write(out, files, languages, curve)
            console.print(f"{number + 1} sentences, {time.process_time():.0f} s, load {os.getloadavg()[0]:.0f}")
    shown = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    print_table(shown, str(shown[0]["signature"]), Console(), SHOWN)


def _continue(runs: Sequence[Run], records: Path) -> int:
    """Give each run its records of an earlier run; return how many sentences they have."""
    by_contender = {run.contender.name: run.records for run in runs}
    for record in read_records(records):
        by_contender[record.contender].append(record)
    return len(runs[0].records)


def _write(out: Path, files: Files, languages: Sequence[Into], curve: CostCurve) -> None:
    """Write the figures of all languages so far."""
    part = out.with_name(out.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        for each in languages:
            done = each.stream.segments[: len(each.runs[0].records)]
            for row in each.rows(curve):
                row["model"] = files.name
                line = signature(
                    files.model,
                    each.stream.name,
                    Stream(each.stream.name, done).hash,
                    segments=len(done),
                    lag=3 if reveals(each.stream.name) else "own",
                    threads=1,
                    prompt="3 examples" if files.by_examples else "chat",
                    seconds="processor",
                    metrics=row.pop("metrics"),
                    bootstrap="1000,95%,seed 0",
                    small=model_label(files.small) if files.small else "none",
                )
                file.write(json.dumps({**row, "signature": line}, ensure_ascii=False) + "\n")
    part.replace(out)


@contextmanager
def opened(files: Files, streams: dict[str, Stream]) -> Iterator[tuple[list[Into], CostCurve]]:
    """Open all methods into every language, those with trees on a cache of their own; also return T(n)."""
    with ExitStack() as stack:

        def open_(path: Path, count: int, model: LlamaModel | None = None, branches: int = 0) -> Processor:
            slots = count * len(streams)
            options = LlamaOptions(CONTEXT, slots, branches=branches * slots, threads=1)
            return stack.enter_context(closing(Processor(path, options, model)))

        trees = [name for name, _ in files.methods if name != LOCAL_AGREEMENT and _needs_trees(name)]
        chains = open_(files.model, len(files.methods))
        branching = open_(files.model, len(trees), chains.model, BRANCHES_OF_A_TREE) if trees else chains
        small = None if files.small is None else open_(files.small, len(SMALL_METHODS))
        slot = chains.open_slot()
        curve = costs.least([costs.sample(chains, slot, time.process_time) for _ in range(SAMPLES)])
        chains.close_slot(slot)
        found = []
        for language, stream in streams.items():
            style, runs = Style(prompt=example_prompt(language) if files.by_examples else None), list[Run]()
            for method, values in files.methods:
                contender = Contender(method, language, tuple(values.items()), small=_small_name(method, files))
                if method == LOCAL_AGREEMENT:
                    task = Task(chains, language, contender.max_tokens, style.prompt)
                    system: System = AgreementTimed(task, int(values["n"]))
                else:
                    backend = branching if method in trees else chains
                    system = ProcessorTimed(backend, contender, style, small if contender.small else None)
                stack.callback(system.close)
                runs.append(Run(contender, system))
            found.append(Into(language, stream, runs))
        yield found, curve


def _needs_trees(method: str) -> bool:
    return Capability.TREES in get_method(method).needs


def _small_name(method: str, files: Files) -> str:
    """Return the name of the small model, if a method has one."""
    return model_label(files.small) if files.small and method in dict(SMALL_METHODS) else ""


if __name__ == "__main__":
    main()
