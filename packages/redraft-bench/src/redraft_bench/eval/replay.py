"""The passes of a run of ``redraft bench``, to be repeated on another model.

A record has the prompt of each update, its output, and of each pass what was cached, drafted and accepted.  Repeated on
random weights, every pass has the prompt, the draft and the roll-back that it had, so it takes as long as on a real
model of that shape.  Ids that a record does not have are unlike all others; trees are repeated as chains.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from redraft.decoding.types import Draft, Provenance, Score
from redraft_bench.eval.record import Step, read_records


@dataclass(frozen=True, slots=True)
class Trace:
    """The passes of a contender.

    Attributes:
        model: file name of the model with which they were recorded.
        data: name of the stream.
        language: target language.
        method: method and settings.
        steps: its updates, with the lengths of their passes.
        updates: the requests of each update; none for one without news.
        signature: that of the run.
    """

    model: str
    data: str
    language: str
    method: str
    steps: tuple[Step, ...]
    updates: tuple[tuple[Score, ...], ...]
    signature: str


def read_traces(path: Path, vocabulary: int = 0) -> Iterator[Trace]:
    """Yield a trace for each contender of a ``.records.jsonl`` file, whose ``.run.json`` is beside it.

    Args:
        vocabulary: size of the vocabulary of the model that repeats them; with 0, ids that are not known are negative.
    """
    run = json.loads(path.with_name(f"{path.name.removesuffix('.records.jsonl')}.run.json").read_text(encoding="utf-8"))
    facts = {name: value for name, _, value in (part.partition(":") for part in run["signature"].split("|"))}
    model, data = (facts[name].partition("@")[0] for name in ("model", "data"))
    records = list(read_records(path))
    for name in run["lines"]:
        method, _, language = name.rpartition(", ")
        steps = tuple(step for record in records if record.contender == name for step in record.steps)
        yield Trace(model, data, language, method, steps, tuple(requests(steps, vocabulary)), run["signature"])


def requests(steps: Iterable[Step], vocabulary: int = 0) -> Iterator[tuple[Score, ...]]:
    """Yield the requests of each update."""
    held: tuple[int, ...] = ()
    others = (number % vocabulary if vocabulary else number for number in count(-1, -1))
    for step in steps:
        scores: list[Score] = []
        if step.passes:
            kept = held[: min(step.passes[0].cached, step.prompt)]
            prompt = (*kept, *(next(others) for _ in range(step.prompt - len(kept))))
            scores = [*_of_step(step, prompt, others, vocabulary)]
            held = scores[-1].prefix + scores[-1].draft.tokens
        yield tuple(scores)


def _of_step(step: Step, prompt: tuple[int, ...], others: Iterator[int], vocabulary: int) -> Iterator[Score]:
    """Yield the requests of an update: what was accepted is in its output, and other ids stand for what was not."""
    tokens = tuple(token % vocabulary for token in step.tokens) if vocabulary else step.tokens
    for each in step.passes:
        done = each.cached + each.new - each.nodes - len(prompt)
        right = tokens[done : done + each.accepted]
        draft = (*right, *(next(others) for _ in range(each.nodes - len(right))))
        yield Score(prompt + tokens[:done], Draft.chain(draft, Provenance.PREVIOUS), each.prompt_rows)
