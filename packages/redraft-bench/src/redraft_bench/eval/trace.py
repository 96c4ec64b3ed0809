"""The passes of a method on a stream, recorded on one model and repeated on another.

A pass has the ids that were asked for and what the method read from the answer.  Repeated on random weights of a larger
model, every pass has the prompt, the draft and the roll-back that it had on a real model, so it takes as long as there.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from redraft.decoding.backend import Backend
from redraft.decoding.types import Draft, Provenance, Rows, Score, common_prefix

#: Reads of rows: the name of a method of `Rows`, its node, and its other arguments.
Read: TypeAlias = tuple[str, int, tuple[int, ...]]
#: Methods of `Rows` whose last argument is an id.
_OF_AN_ID = "logprob"


@dataclass(frozen=True, slots=True)
class Pass:
    """A request to the target model, and what the method read from its answer."""

    score: Score
    reads: tuple[Read, ...] = ()

    def repeat(self, rows: Rows) -> None:
        """Read the same from another answer."""
        for name, node, arguments in self.reads:
            getattr(rows, name)(node, *arguments)

    def within(self, vocabulary: int) -> Pass:
        """Return the pass with ids of a vocabulary of this size."""
        score, draft = self.score, self.score.draft
        tokens = tuple([token % vocabulary for token in draft.tokens])
        drafted = Draft(tokens, draft.parents, draft.provenance, prompt_rows=draft.prompt_rows)
        prefix = tuple([token % vocabulary for token in score.prefix])
        reads = [
            (name, node, tuple([each % vocabulary for each in more]) if name == _OF_AN_ID else more)
            for name, node, more in self.reads
        ]
        return Pass(Score(prefix, drafted, score.prompt_rows), tuple(reads))


@dataclass(frozen=True, slots=True)
class Trace:
    """The passes of a method.

    Attributes:
        model: name of the model.
        data: name of the stream.
        language: target language.
        method: name of the method and its settings.
        updates: the passes of each update, often none for an update without news.
    """

    model: str
    data: str
    language: str
    method: str
    updates: tuple[tuple[Pass, ...], ...]

    def within(self, vocabulary: int) -> Trace:
        """Return the trace with ids of a vocabulary of this size."""
        updates = tuple(tuple(each.within(vocabulary) for each in passes) for passes in self.updates)
        return Trace(self.model, self.data, self.language, self.method, updates)


class Recorder:
    """A backend that notes every pass of another one, to which it leaves everything else."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._passes: list[tuple[Score, list[Read]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer, and note the requests."""
        answers: list[Rows] = []
        for (_slot, score), rows in zip(requests, self._backend.score(requests), strict=True):
            reads: list[Read] = []
            self._passes.append((score, reads))
            answers.append(_NotedRows(rows, reads))
        return answers

    def take(self) -> tuple[Pass, ...]:
        """Return the passes since the last call."""
        taken = tuple(Pass(score, tuple(reads)) for score, reads in self._passes)
        self._passes = []
        return taken


class _NotedRows:
    """Rows that note what is read."""

    def __init__(self, rows: Rows, reads: list[Read]) -> None:
        self._rows, self._reads = rows, reads

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._rows, name)

        def noted(node: int, *arguments: int) -> Any:
            self._reads.append((name, node, arguments))
            return found(node, *arguments)

        return noted


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write traces as compressed JSON Lines; of a prefix, only what differs from the one before."""
    with gzip.open(path, "wt", encoding="utf-8", newline="\n") as file:
        for trace in traces:
            head = {"model": trace.model, "data": trace.data, "language": trace.language, "method": trace.method}
            line = {**head, "updates": list(_packed(trace.updates))}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _packed(updates: Iterable[Iterable[Pass]]) -> Iterator[list[Any]]:
    before: tuple[int, ...] = ()
    for passes in updates:
        packed = []
        for each in passes:
            score, draft = each.score, each.score.draft
            kept = common_prefix(before, score.prefix)
            parents = () if draft.is_chain else draft.parents
            packed.append([kept, score.prefix[kept:], draft.tokens, parents, score.prompt_rows, each.reads])
            before = score.prefix
        yield packed


def read_traces(path: Path) -> list[Trace]:
    """Read what `write_traces` has written."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return [Trace(**{**each, "updates": tuple(_unpacked(each["updates"]))}) for each in found]


def _unpacked(updates: Iterable[Iterable[list[Any]]]) -> Iterator[tuple[Pass, ...]]:
    prefix: tuple[int, ...] = ()
    for packed in updates:
        passes = []
        for kept, new, tokens, parents, prompt_rows, reads in packed:
            prefix = (*prefix[:kept], *new)
            draft = Draft.chain(tokens, Provenance.MODEL)
            if parents:
                draft = Draft(tuple(tokens), tuple(parents), draft.provenance)
            noted = tuple((name, node, tuple(more)) for name, node, more in reads)
            passes.append(Pass(Score(prefix, draft, prompt_rows), noted))
        yield tuple(passes)
