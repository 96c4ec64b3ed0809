"""Tasks other than translation: questions, summaries and code, as AASD and BiLD decode them, and their scores.

Questions are scored by F1 of words, summaries by ROUGE-L, code by similarity of characters (AASD, section 4.1), as in
LongBench (Bai et al. 2023).  Needs the ``tasks`` extra.
"""

from __future__ import annotations

import json
import re
import string
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

from redraft.captions.events import Failure, Update
from redraft.decoding.backend import Backend
from redraft.decoding.methods import get_method
from redraft.errors import CapabilityError, InputError, MissingExtra
from redraft.generator import Generator
from redraft_bench import install
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import Row, TableLine, baseline
from redraft_bench.eval.meter import Meter
from redraft_bench.eval.record import Step
from redraft_bench.eval.sets import lines_of
from redraft_bench.eval.stream import Segment, Stream


@dataclass(frozen=True, slots=True)
class TextTask:
    """A prompt with the text that is expected.

    Attributes:
        kind: ``question``, ``summary`` or ``code``.
    """

    kind: str
    prompt: str
    reference: str


def read_tasks(path: Path, limit: int = 0) -> dict[str, TextTask]:
    """Read tasks from JSON Lines with ``task``, ``prompt`` and ``reference``, by the names of their utterances.

    Args:
        path: the file.
        limit: maximum number of tasks of each kind; 0 takes all.

    Raises:
        InputError: a line is not a task.
    """
    found: dict[str, TextTask] = {}
    counts: Counter[str] = Counter()
    for number, line in lines_of(path):
        try:
            fields = json.loads(line)
            task = TextTask(fields["task"], fields["prompt"], fields["reference"])
            if task.kind not in SCORES or not all(isinstance(text, str) for text in (task.prompt, task.reference)):
                raise ValueError(f"task must be one of {', '.join(SCORES)}, with texts")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}, line {number}: this is not a task: {error}") from None
        counts[task.kind] += 1
        if not limit or counts[task.kind] <= limit:
            found[f"{task.kind}-{counts[task.kind]}"] = task
    return found


def task_stream(name: str, tasks: Mapping[str, TextTask], language: str) -> Stream:
    """Return tasks as a stream of final texts, of a single line each; `TaskSystem` reads the prompts themselves."""
    segments = (
        Segment((Update(utterance, 0, " ".join(task.prompt.split()), True),), {language: task.reference})
        for utterance, task in tasks.items()
    )
    return Stream(name, tuple(segments))


class TaskSystem:
    """A method that writes the texts of tasks; implements `redraft_bench.eval.measure.System`.

    Args:
        tasks: the tasks by the names of their utterances.
    """

    def __init__(
        self, backend: Backend, contender: Contender, tasks: Mapping[str, TextTask], small: Backend | None = None
    ) -> None:
        if contender.batch > 1:
            raise CapabilityError("batches are for translations")
        method, self._tasks, self._meter = get_method(contender.method), tasks, Meter()

        watched = self._meter.watched(method)
        self._generator = Generator(backend, watched, dict(contender.options), small=small, watch=self._meter)
        self._tokenize = backend.tokenize

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        """Write the text of a task."""
        started, cpu = time.perf_counter(), time.process_time()
        made = self._generator.generate(self._tasks[update.utterance].prompt)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        output = made.output
        taken = self._meter.take(len(made.prompt), output.tokens, output.finished)
        prompt, tokens, text = len(made.prompt), output.tokens, made.text.strip()
        head = update.seq, update.text, True, None, prompt, tokens, text, "", output.finished, seconds
        tail = taken.seconds, taken.passes, output.draft_passes
        more: dict[str, Any] = {
            "settled": taken.settled,
            "end_drafted": taken.end_drafted,
            "first_seconds": taken.first,
        }
        return Step(*head, *tail, cpu_seconds=cpu, **more), []

    def tokenize(self, text: str) -> list[int]:
        """Tokenize with the model's tokenizer."""
        return self._tokenize(text)

    def close(self) -> None:
        """Release the slots."""
        self._generator.close()


def f1(text: str, reference: str) -> float:
    """Return F1 of the words of an answer, 0-100, without case, punctuation and articles (Rajpurkar et al. 2016)."""
    words, wanted = (Counter(_words(each)) for each in (text, reference))
    shared = (words & wanted).total()
    return 200.0 * shared / (words.total() + wanted.total()) if shared else 0.0


def _words(text: str) -> list[str]:
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def rouge_l(text: str, reference: str) -> float:
    """Return the F-measure of ROUGE-L, 0-100, by the library rouge-score."""
    from rouge_score.rouge_scorer import RougeScorer

    return 100.0 * float(RougeScorer(["rougeL"]).score(reference, text)["rougeL"].fmeasure)


def edit_similarity(text: str, reference: str) -> float:
    """Return the similarity of the first line of code with its reference, 0-100, by the library rapidfuzz."""
    from rapidfuzz.fuzz import ratio

    lines = (line for line in text.strip().splitlines() if line.strip() and not line.startswith(("#", "//", "`")))
    return float(ratio(next(lines, ""), reference))


#: Kind of task -> field of its score, and the function that computes it.
SCORES: dict[str, tuple[str, Callable[[str, str], float]]] = {
    "question": ("f1", f1),
    "summary": ("rouge_l", rouge_l),
    "code": ("edit_similarity", edit_similarity),
}


#: Kind of task -> module of the library that scores it, where one does.
_LIBRARIES = {"summary": "rouge_score", "code": "rapidfuzz"}


def require_scores(tasks: Iterable[TextTask]) -> None:
    """Check that what scores ``tasks`` is installed.  Raises `MissingExtra` if it is not."""
    for kind in {task.kind for task in tasks} & _LIBRARIES.keys():
        if find_spec(module := _LIBRARIES[kind]) is None:
            raise MissingExtra(f"the score of tasks of the kind {kind!r} needs {module}: {install('tasks')}")


def scores(texts: Sequence[str], tasks: Sequence[TextTask]) -> Row:
    """Return the mean score of each kind of task."""
    found: Row = {}
    for kind, (field, score) in SCORES.items():
        pairs = [(text, task.reference) for text, task in zip(texts, tasks, strict=True) if task.kind == kind]
        if pairs:
            found[field] = round(fmean(score(*pair) for pair in pairs), 2)
    return found


def efficiency(lines: Sequence[TableLine], tasks: Sequence[TextTask]) -> list[Row]:
    """Return for each line the figures of each kind of task by themselves (AASD, Table 2).

    They are the mean acceptance length, and tokens per second without the first pass, whose time depends on the length
    of the prompt alone (section 4.3), with their ratio to `ar`.
    """
    found: list[Row] = [{} for _ in lines]
    for kind in SCORES:
        places = [place for place, task in enumerate(tasks) if task.kind == kind]
        of_kind = [replace(line, records=[line.records[place] for place in places]) for line in lines]
        for row, line in zip(found, of_kind, strict=True) if places else ():
            speed, plain = line.later_speed, baseline(line, of_kind)
            row[f"acceptance_length_{kind}"] = round(line.acceptance_length, 3)
            row[f"later_speed_{kind}"] = round(speed, 1)
            if plain is not None and plain.later_speed:
                row[f"later_speedup_{kind}"] = round(speed / plain.later_speed, 3)
    return found
