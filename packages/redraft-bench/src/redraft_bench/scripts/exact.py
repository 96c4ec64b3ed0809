"""Check that methods give the ids that they should: of greedy re-translation, of SSBD, or of LocalAgreement.

Redraft with one beta for all tokens must give SSBD's ids, with no bias those of `ar`, and with a full bias towards
what is shown and none towards the rest those of LocalAgreement with a forced prefix.  Every mismatch is examined.
LocalAgreement does not get out of loops, and selects its vocabulary again behind what it forces.  So an utterance is
compared up to the first output that loops, is cut, is decoded again since it stops short, or has a token that Redraft
cannot choose there.

In 32-bit floats there should be none.  With quantised weights, batched and single passes differ in the last bits.  A
mismatch is explained by rounding if the gap between the two best tokens at the first different position is at most the
largest difference of log-probabilities observed between single and batched passes over the same ids, up to and
including the positions of this run's mismatches.

python -m redraft_bench.scripts.exact --to de --limit 200 --format F32 --exact

python -m redraft_bench.scripts.exact --to de --limit 10 --model gemma
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import click
from rich.console import Console
from rich.progress import track

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.captions.events import Update
from redraft.captions.style import Style
from redraft.decoding.ends import loop_at_end
from redraft.decoding.method import Value
from redraft.decoding.methods import all_methods
from redraft.decoding.selection import Selection
from redraft.decoding.types import ROOT, Draft, Provenance, Score, common_prefix, top_k
from redraft.signature import signature
from redraft_bench.bench.peers.local_agreement import LocalAgreement
from redraft_bench.bench.peers.retranslate import Task
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import MethodSystem, Run, compare
from redraft_bench.eval.sets import SETS, lag_stream, load_set
from redraft_bench.quantise import quantise
from redraft_bench.scripts.real_models import with_style

Ids: TypeAlias = tuple[int, ...]
#: A method and its options.
Asked: TypeAlias = tuple[str, tuple[tuple[str, Value], ...]]

FORMATS = ("F32", "shipped")
BIAS: tuple[tuple[str, Value], ...] = (("beta", 0.2),)
ONE_BIAS: tuple[tuple[str, Value], ...] = (*BIAS, ("hidden_beta", 0.2))
WHOLE: tuple[tuple[str, Value], ...] = (("agree", 1), ("first_sight", 1))
TWO: tuple[tuple[str, Value], ...] = (("agree", 2), ("first_sight", 1))
#: What is compared -> the methods with their options; the first one has the right ids.
PAIRS: dict[str, tuple[Asked, Asked]] = {
    "ssbd": (("ar", ()), ("ssbd", (("beta", 0.0),))),
    "redraft": (("ssbd", BIAS), ("redraft", (*ONE_BIAS, *WHOLE))),
    "unbiased": (("ar", ()), ("redraft", (("beta", 0.0), ("hidden_beta", 0.0), ("stop", 0.0), *TWO))),
    "calm": (
        ("local-agreement", (("n", 2),)),
        ("redraft", (("beta", 0.5), ("hidden_beta", 0.0), ("stop", 0.0), *TWO)),
    ),
}


@click.command(help=__doc__)
@click.option("--data", default="flores200.devtest", type=click.Choice(list(SETS)), show_default=True)
@click.option("--to", default="de", help="Target language: de, zh or ja.", show_default=True)
@click.option("--model", default="demo", help="A name, a GGUF file, or gemma (extra model-tests).", show_default=True)
@click.option("--limit", default=100, help="Segments; 0 takes all.", show_default=True)
@click.option("--lag", default=3, help="Words that come at a time.", show_default=True)
@click.option("--compare", "pair", default="ssbd", type=click.Choice(list(PAIRS)), show_default=True)
@click.option("--format", default="F32", type=click.Choice(FORMATS), show_default=True)
@click.option("--exact", is_flag=True, help="The engine's bit-equal kernels.")
@click.option("--threads", default=0, help="CPU threads; 0 takes all cores.", show_default=True)
def main(
    data: str, to: str, model: str, limit: int, lag: int, pair: str, format: str, exact: bool, threads: int
) -> None:
    """Compare after every update; print a JSON object."""
    stream = lag_stream(load_set(data, to, limit), to, lag)
    with tempfile.TemporaryDirectory() as folder:
        given, style = with_style(model, to)
        path = given
        if format != "shipped":
            path = Path(folder) / f"{given.stem}-{format}.gguf"
            quantise(given, path, format)
        contenders = [Contender(method, to, options) for method, options in PAIRS[pair]]
        engine = LlamaOptions(context_length=1024, slots=3, threads=threads, exact=exact)
        backend = LlamaCpp(path, engine)
        updates = list(stream.updates)
        plain, drafted = follow(backend, contenders, track(updates, to, console=Console(stderr=True)), style)
        apart = set(after_a_cut(updates, plain.cut | drafted.cut))
        gaps = mismatches(backend, plain, drafted, apart)
        line = signature(path, data, stream.hash, lag=lag, segments=len(stream.segments), threads=threads, exact=exact)
        backend.close()
    rounding = max((seen for _gap, seen in gaps), default=0.0)
    unexplained = [gap for gap, _seen in gaps if gap > rounding]
    row = {
        "method": contenders[1].title,
        "compared_with": contenders[0].title,
        "target_language": to,
        "updates": len(updates) - len(apart),
        "output_tokens": sum(map(len, plain.outputs)),
        "mismatches": len(gaps),
        "unexplained": len(unexplained),
        "largest_gap": round(max((gap for gap, _ in gaps), default=0.0), 5),
        "largest_rounding": round(rounding, 5),
        "passes": [plain.run.passes, drafted.run.passes],
    }
    print(json.dumps({**row, "signature": line}))
    raise SystemExit(1 if unexplained else 0)


@dataclass(slots=True)
class Followed:
    """A run, with the ids of prompt and output after every update, and which outputs are not compared."""

    run: Run
    prompts: list[Ids] = field(default_factory=list)
    outputs: list[Ids] = field(default_factory=list)
    cut: set[int] = field(default_factory=set)
    reopened: int = 0


def follow(
    backend: LlamaCpp, contenders: Sequence[Contender], updates: Iterable[Update], style: Style = Style()
) -> list[Followed]:
    """Run every contender on every update, and record the ids."""
    tasks = [Task(backend, each.language, each.max_tokens) for each in contenders]
    runs = [
        Run(each, LocalAgreement(task) if each.method not in all_methods() else MethodSystem(backend, each, style))
        for each, task in zip(contenders, tasks, strict=True)
    ]
    followed = [Followed(run) for run in runs]

    def keep(update: Update, _runs: Sequence[Run]) -> None:
        for each, task in zip(followed, tasks, strict=True):
            if not each.run.latest.finished or not _possible(each.run.latest.tokens, task.selection(update.text)):
                each.cut.add(len(each.outputs))
            if isinstance(each.run.system, MethodSystem):
                translation = each.run.system.translator.state(each.run.contender.language)
                each.prompts.append(translation.prompt)
                if translation.tally.reopened > each.reopened:
                    each.cut.add(len(each.outputs))
                each.reopened = translation.tally.reopened
            each.outputs.append(each.run.latest.tokens)

    compare(runs, updates, keep)
    for run in runs:
        run.system.close()
    return followed


def _possible(tokens: Ids, selection: Selection) -> bool:
    """Whether Redraft can give an output: one without a loop, and with tokens that may follow each other."""
    return all(
        selection.after(tokens[:place]).among((token,)) and not loop_at_end(tokens[: place + 1])
        for place, token in enumerate(tokens)
    )


def after_a_cut(updates: Sequence[Update], cut: Container[int]) -> Iterator[int]:
    """Yield the updates whose output was cut, and those that follow in the same utterance."""
    utterance = ""
    for number, update in enumerate(updates):
        if number in cut:
            utterance = update.utterance
        if update.utterance == utterance:
            yield number


def mismatches(
    backend: LlamaCpp, plain: Followed, drafted: Followed, apart: Container[int] = ()
) -> list[tuple[float, float]]:
    """For each update with different ids, return the gap of the first two that differ, and the error.

    Updates ``apart`` are left out.  Both are in nats; two log-probabilities with this error may change places if they
    are up to twice as far apart.
    """
    found = []
    outputs = zip(drafted.prompts, plain.outputs, drafted.outputs, strict=True)
    for number, (prompt, first, second) in enumerate(outputs):
        if first != second and number not in apart:
            output = first[: common_prefix(first, second)]
            chosen = [each[len(output)] if len(each) > len(output) else None for each in (first, second)]
            single, gap = _one_by_one(backend, prompt, output, chosen)
            batched = _at_once(backend, prompt, output, [token for token, _log in single])
            rounding = max(abs(log - there) for (_token, log), there in zip(single, batched, strict=True))
            found.append((gap, 2 * rounding))
    return found


def _one_by_one(
    backend: LlamaCpp, prompt: Ids, output: Ids, chosen: Sequence[int | None]
) -> tuple[list[tuple[int, float]], float]:
    """Return the best token at each position, one pass each, and how far apart the two tokens chosen last are.

    None is the end of the output.  The two need not be the best two, which may be impossible there.
    """
    slot = backend.open_slot()
    best: list[tuple[int, float]] = []
    for length in range(len(output) + 1):
        rows = backend.score([(slot, Score(prompt + output[:length]))])[0]
        best.append(top_k(rows, ROOT, 1)[0])
    ends = [rows.logprob(ROOT, token) for token in backend.end_tokens]
    one, other = (max(ends) if token is None else rows.logprob(ROOT, token) for token in chosen)
    backend.close_slot(slot)
    return best, abs(one - other)


def _at_once(backend: LlamaCpp, prompt: Ids, output: Ids, tokens: Sequence[int]) -> list[float]:
    """Return the log-probabilities of ``tokens`` at the same positions from one pass."""
    slot = backend.open_slot()
    rows = backend.score([(slot, Score(prompt, Draft.chain(output, Provenance.PREVIOUS)))])[0]
    logs = [rows.logprob(node, token) for node, token in enumerate(tokens, ROOT)]
    backend.close_slot(slot)
    return logs


if __name__ == "__main__":
    main()
