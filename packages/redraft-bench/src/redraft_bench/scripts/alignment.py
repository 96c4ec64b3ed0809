"""AASD, Figure 1 and Table 8: what drafts from the prompt are worth, before anything is done about them.

A token of the prompt is *aligned* if it is the model's most probable one after the tokens before it (section 2.3).
Figure 1 compares how many drafted tokens of either kind are accepted with prompt lookup.  Table 8 has the overlap of
prompt and reference (equation 7).

python -m redraft_bench.scripts.alignment --model my.gguf --data tasks
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import click

from redraft.backends.load import resolve
from redraft.decoding.method import Method, Setup
from redraft.decoding.methods import get_method
from redraft.decoding.types import Asking, Context, Draft, Drafter, Provenance, Rows, Rule, Verdict
from redraft.generator import Generator
from redraft.signature import print_json, signature, text_hash
from redraft_bench.bench.data import tasks_of
from redraft_bench.eval.figures import Row


@dataclass(slots=True)
class Aligning(Drafter):
    """A drafter of one n-gram; counts the drafted tokens of the prompt by (aligned, accepted).

    Attributes:
        prompt: ids of the prompt.
        best: (n - 1,) most probable token after each id of the prompt but the last.
    """

    drafter: Drafter
    counts: Counter[tuple[bool, bool]]
    prompt: tuple[int, ...] = ()
    best: list[int] = field(default_factory=list)

    def drafting(self, context: Context) -> Asking[Draft]:
        """Return the drafter's draft; for the first pass, also request the rows of the prompt."""
        draft = yield from self.drafter.drafting(context)
        if context.output:
            return draft
        self.prompt = context.prompt.ids
        return replace(draft, prompt_rows=len(context.prompt.ids))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Learn the prompt's rows in the first pass, and count in every one."""
        if not self.best:
            self.best = [rows.argmax(node) for node in range(-len(self.prompt), -1)]
        tokens = draft.tokens[: sum(each == Provenance.PROMPT for each in draft.provenance)]
        places = [place for place in range(len(self.prompt)) if self.prompt[place : place + len(tokens)] == tokens]
        for node, token in enumerate(tokens):
            aligned = any(place + node and self.best[place + node - 1] == token for place in places)
            self.counts[aligned, node < len(verdict.accepted)] += 1
        self.drafter.observe(draft, rows, verdict)


def overlap(source: Sequence[str], target: Sequence[str]) -> float:
    """Return R: the length of the longest common subsequence of two texts, over that of the target (equation 7)."""
    row = [0] * (len(target) + 1)
    for word in source:
        before = row
        row = [0]
        for place, other in enumerate(target):
            row.append(before[place] + 1 if word == other else max(row[place], before[place + 1]))
    return row[-1] / len(target) if target else 0.0


@click.command(help=__doc__)
@click.option("--model", default="demo")
@click.option("--data", default="tasks", help="Tasks, as for `redraft bench run aasd-table-1`.")
@click.option("--limit", default=0, help="Tasks of each kind; 0 for all.")
@click.option("--max-tokens", default=256)
def main(model: str, data: str, limit: int, max_tokens: int) -> None:
    """Print a JSON object for each kind of task, and one for all."""
    counts: dict[str, Counter[tuple[bool, bool]]] = {}
    lengths: dict[str, list[tuple[int, int, float]]] = {}
    kind, tasks = "", tasks_of(data, limit)

    def build(setup: Setup) -> tuple[Drafter, Rule]:
        drafter, rule = lookup.build(setup)
        return Aligning(drafter, counts.setdefault(kind, Counter())), rule

    lookup: Method = get_method("pld")
    options = {"context_length": 4096}
    with Generator.open(
        model, method=replace(lookup, build=build), options={"max_tokens": max_tokens}, engine=options
    ) as generator:
        for task in tasks.values():
            kind = task.kind
            generator.generate(task.prompt)
            words, wanted = task.prompt.split(), task.reference.split()
            lengths.setdefault(kind, []).append((len(words), len(wanted), overlap(words, wanted)))
    every = [each for of_kind in lengths.values() for each in of_kind]
    rows = [_row(kind, each, lengths[kind]) for kind, each in counts.items()]
    line = signature(resolve(model), data, text_hash(str(tasks)), limit=limit, max_tokens=max_tokens)
    print_json([*rows, _row("all", sum(counts.values(), Counter()), every)], line, sys.stdout)


def _row(kind: str, counts: Counter[tuple[bool, bool]], lengths: Sequence[tuple[int, int, float]]) -> Row:
    """Return the shares of Figure 1, and means of Table 8 with lengths in words."""

    def share(above: int, below: int) -> float | None:
        return round(above / below, 4) if below else None

    aligned, other = (counts[kind_, True] + counts[kind_, False] for kind_ in (True, False))
    return {
        "task": kind,
        "drafted": aligned + other,
        "misaligned": share(other, aligned + other),
        "accepted_aligned": share(counts[True, True], aligned),
        "accepted_misaligned": share(counts[False, True], other),
        "prompt_words": round(fmean(each[0] for each in lengths), 1),
        "reference_words": round(fmean(each[1] for each in lengths), 1),
        "overlap": round(fmean(each[2] for each in lengths), 4),
    }


if __name__ == "__main__":
    main()
