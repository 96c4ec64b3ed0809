"""Measure live captions of a model that may be too slow for the speech: their lag with computing time.

A recogniser's updates of a talk are translated into one language, two and three, by a simulated clock.  An update takes
the processor time that it took here, in one thread and for all languages together, so other programs do not matter.
What comes in the meantime waits, and of an utterance only the newest update is kept, as in `redraft listen` and the
server; final updates are all translated.  LocalAgreement is redraft's setting for it (docs/calm.md).

The weights are in the extra ``model-tests``.  Methods that are in --out are not run again.

python -m redraft_bench.scripts.live --model qwen-0.5b --out benchmarks/results/live.jsonl
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from redraft.captions.events import Caption, Event, Newest, Update
from redraft.decoding.method import Value
from redraft.signature import signature
from redraft.translator import Translator
from redraft_bench.bench.data import RECOGNISED, recognised
from redraft_bench.eval.caption_lag import caption_lag_figures
from redraft_bench.eval.figures import Row
from redraft_bench.eval.record import Record, Step
from redraft_bench.eval.stream import Stream
from redraft_bench.scripts.real_models import MODELS

LANGUAGES = ("de", "zh", "ja")
#: Name of the line -> method and options.
METHODS: dict[str, tuple[str, dict[str, Value]]] = {
    "ar": ("ar", {}),
    "LocalAgreement": ("redraft", {"beta": 0.5, "hidden_beta": 0.0, "agree": 2, "first_sight": 1}),
    "ssbd": ("ssbd", {}),
    "redraft": ("redraft", {}),
}
SHOWN = ("method", "languages", "answer_p50", "answer_p95", "passed_over", "busy", "lag_first", "lag_good", "retracted")


@dataclass(frozen=True, slots=True)
class Answered:
    """The events of an update, when they came, in seconds of the stream, and how long it took."""

    update: Update
    events: Sequence[Event]
    time: float
    seconds: float


def replay(
    updates: Sequence[Update], translate: Callable[[Update], list[Event]], clock: Callable[[], float]
) -> tuple[list[Answered], int]:
    """Translate a timed stream with whatever time that takes.

    Args:
        updates: the updates, in the order of their times.
        translate: translates one.
        clock: returns the time in seconds of which a translation takes some.

    Returns:
        The answers, and the number of updates that were passed over.
    """
    coming, waiting, now, found = list(reversed(updates)), Newest[Update](), 0.0, list[Answered]()
    passed_over = 0
    while coming or waiting:
        if not waiting:
            now = max(now, _time(coming[-1]))
        while coming and _time(coming[-1]) <= now:
            update = coming.pop()
            passed_over += waiting.put(update, update.utterance, final=update.final) is not None
        update = waiting.take()
        started = clock()
        events = translate(update)
        seconds = clock() - started
        now += seconds
        found.append(Answered(update, events, now, seconds))
    return found, passed_over


def _time(update: Update) -> float:
    assert update.time is not None  # noqa: S101  # a recognised stream has times
    return update.time


def records(answers: Sequence[Answered], stream: Stream, language: str) -> list[Record]:
    """Return what was shown in one language, with the times of the answers."""
    steps: dict[str, list[Step]] = defaultdict(list)
    for each in answers:
        update, shown = each.update, ""
        captions = [event for event in each.events if isinstance(event, Caption) and event.language == language]
        if captions:
            shown = captions[-1].text
        elif steps[update.utterance]:
            shown = steps[update.utterance][-1].text
        steps[update.utterance].append(
            Step(update.seq, update.text, update.final, each.time, 0, (), shown, "", True, 0.0, 0.0, ())
        )
    return [
        Record(number, segment.utterance, language, tuple(steps[segment.utterance]))
        for number, segment in enumerate(stream.segments)
    ]


def figures(answers: Sequence[Answered], passed_over: int, stream: Stream, languages: Sequence[str]) -> Row:
    """Return the figures of a run; those of several languages are averaged."""
    lags = [each.time - _time(each.update) for each in answers]
    row: Row = {
        "languages": len(languages),
        "updates": len(answers) + passed_over,
        "passed_over": round(passed_over / (len(answers) + passed_over), 3),
        "answer_p50": round(float(np.percentile(lags, 50)), 2),
        "answer_p95": round(float(np.percentile(lags, 95)), 2),
        "answer_first": round(lags[0], 2),
        "busy": round(sum(each.seconds for each in answers) / answers[-1].time, 3),
    }
    found = [records(answers, stream, language) for language in languages]
    shown = [caption_lag_figures(each, stream, tag) for each, tag in zip(found, languages, strict=True)]
    for name in ("lag_first", "lag_good", "stood", "retracted"):
        row[name] = round(float(np.mean([each[name] for each in shown])), 3)
    return row


def run(path: Path, stream: Stream, name: str, languages: Sequence[str]) -> Row:
    """Translate the stream with a method of `METHODS`, and return the figures."""
    method, options = METHODS[name]
    engine = {"context_length": 512, "threads": 1}
    opened = Translator.open(path, to=languages, method=method, options=options, engine=engine)
    with closing(opened) as translator:
        updates = [update for segment in stream.segments for update in segment.updates]
        answers, passed_over = replay(updates, translator.translate, time.process_time)
    return figures(answers, passed_over, stream, languages)


@click.command(help=__doc__)
@click.option("--model", default="qwen-0.5b", type=click.Choice([each for each in MODELS if each != "gemma"]))
@click.option("--data", default="acl-second", type=click.Choice(list(RECOGNISED)), show_default=True)
@click.option("--limit", default=12, help="Utterances.", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("live.jsonl"), help="File for the rows.")
def main(model: str, data: str, limit: int, out: Path) -> None:
    """Run all methods into one language, two and three."""
    console, stream, path = Console(), recognised(data, "de", limit), MODELS[model]()
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    done = {(row["model"], row["method"], row["languages"]) for row in found}
    line = signature(path, stream.name, stream.hash, segments=limit, threads=1, prompt="chat", seconds="processor")
    for count in range(1, len(LANGUAGES) + 1):
        for name in METHODS:
            if (model, name, count) in done:
                continue
            row: Row = {"model": model, "method": name, **run(path, stream, name, LANGUAGES[:count])}
            row |= {"data": stream.name, "signature": line}
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            console.print(", ".join(f"{field} {row[field]}" for field in SHOWN))


if __name__ == "__main__":
    main()
