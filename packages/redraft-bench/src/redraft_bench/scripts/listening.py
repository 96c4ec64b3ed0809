"""Measure recognisers on real voices: wrong words, lag from the end of a word to its caption, and CPU time.

The recording is in the package moonshine-voice: a reading of the beginning of A Tale of Two Cities, as it is spoken.
Whisper base has aligned its words, except for "we were all going direct to Heaven", whose times are interpolated.  The
lag of a word ends with the first caption (or, without translation, update) whose source contains it from then on.
Recognition is a process of its own, so its CPU time is measured apart from that of the translation.

python -m redraft_bench.scripts.listening > benchmarks/results/listening.jsonl
python -m redraft_bench.scripts.listening --recogniser whisper:FOLDER >> benchmarks/results/listening.jsonl
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import click
import numpy as np

from redraft.captions.events import Caption, Failure, Update
from redraft.models import shipped_path
from redraft.signature import file_hash, machine
from redraft.speech.audio import RATE, Samples, at_speed, file_blocks, library
from redraft.speech.backlog import Backlog
from redraft.speech.endpoint import PAUSE
from redraft.speech.process import isolated
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import all_recognisers, resolve
from redraft.translator import Translator

#: The recording, and the file with its words, each with the time of its end in seconds.
RECORDING = "two_cities"
WORDS = Path(__file__).with_name(f"{RECORDING}.tsv")
LANGUAGES = ("de", "ja", "zh")


@dataclass(frozen=True)
class Shown:
    """A text that was shown for an utterance, at a time in seconds from the start of the audio."""

    time: float
    utterance: str
    source: str


class Clock:
    """Seconds since the first block of audio was requested."""

    def __init__(self, blocks: Iterator[Samples]) -> None:
        self._blocks, self._start, self.samples = blocks, 0.0, 0

    def __iter__(self) -> Iterator[Samples]:
        self._start = time.monotonic()
        for block in self._blocks:
            self.samples += len(block)
            yield block

    def now(self) -> float:
        """Return the seconds."""
        return time.monotonic() - self._start


def words_of(text: str) -> list[str]:
    """Return the words without case and punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower())


def word_errors(reference: Sequence[str], found: Sequence[str]) -> float:
    """Return the word error rate: wrong, missing and extra words per spoken word."""
    row = list(range(len(found) + 1))
    for word in reference:
        last, row[0] = row[0], row[0] + 1
        for place, other in enumerate(found, 1):
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, last + (word != other))
    return round(row[-1] / len(reference), 3)


def appearances(shown: Sequence[Shown]) -> list[tuple[str, float]]:
    """Return each word of the last texts of utterances, with the time from which on it was shown."""
    found = []
    for utterance in dict.fromkeys(each.utterance for each in shown):
        texts = [(each.time, words_of(each.source)) for each in shown if each.utterance == utterance]
        last = texts[-1][1]
        for place, word in enumerate(last):
            count = last[: place + 1].count(word)
            since = next((index + 1 for index in reversed(range(len(texts))) if texts[index][1].count(word) < count), 0)
            found.append((word, texts[since][0]))
    return found


def lags(shown: Sequence[Shown], spoken: Sequence[tuple[str, float]]) -> list[float]:
    """Return the lag of each word that was recognised correctly, in seconds."""
    found = appearances(shown)
    matcher = SequenceMatcher(None, [word for word, _ in spoken], [word for word, _ in found], autojunk=False)
    return [
        found[block.b + offset][1] - spoken[block.a + offset][1]
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    ]


def run(path: Path, recogniser: str, to: Sequence[str]) -> tuple[list[Update], dict[str, list[Shown]], dict[str, Any]]:
    """Recognise and translate a recording; return the updates, what was shown by language, and the times."""
    updates = list[Update]()
    shown: dict[str, list[Shown]] = {}
    with ExitStack() as stack:
        translator = None
        if to:
            translator = stack.enter_context(Translator.open("demo", to=list(to)))
            translator.translate(Update("warm-up", 0, "Good evening.", final=True))
        clock = Clock(at_speed(file_blocks(str(path)), 1.0))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        opened = isolated(recogniser, "en", PAUSE, None)
        cpu = time.process_time()
        for item in Backlog(transcribe(clock, opened)):
            if isinstance(item, Failure):
                raise click.ClickException(item.message)
            updates.append(item)
            for event in translator.translate(item) if translator else [item]:
                if isinstance(event, Caption):
                    made = Shown(clock.now(), event.utterance, event.source)
                    shown.setdefault(event.language, []).append(made)
                elif isinstance(event, Update):
                    shown.setdefault("", []).append(Shown(clock.now(), event.utterance, event.text))
        seconds, translating = clock.now(), time.process_time() - cpu
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    audio = clock.samples / RATE
    recognising = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    figures = {
        "audio_seconds": round(audio, 1),
        "seconds_per_second": round(seconds / audio, 2),
        "cpu_recognition": round(recognising / audio, 2),
        "cpu_rest": round(translating / audio, 2),
    }
    return updates, shown, figures


def row(recogniser: str, to: Sequence[str]) -> dict[str, Any]:
    """Return the figures of a run."""
    path = Path(library("moonshine_voice").get_assets_path()) / f"{RECORDING}.wav"
    load = os.getloadavg()[0]
    updates, shown, figures = run(path, recogniser, to)
    text = " ".join(update.text for update in updates if update.final)
    lines = WORDS.read_text(encoding="utf-8").splitlines()
    spoken = [(words_of(word)[0], float(end)) for word, end in (line.split("\t") for line in lines)]
    found = [lag for texts in shown.values() for lag in lags(texts, spoken)]
    made: dict[str, Any] = {
        "recogniser": label(recogniser),
        "to": list(to),
        "updates": len(updates),
        **figures,
        "load": round(load, 1),
        "text": text,
        "word_errors": word_errors([word for word, _ in spoken], words_of(text)),
        **{f"lag_p{each}": round(float(np.percentile(found, each)), 2) for each in (50, 95)},
    }
    facts = {
        "redraft": version("redraft"),
        "recogniser": made["recogniser"],
        "model": f"demo@{file_hash(shipped_path('demo'))}" if to else "none",
        "data": f"{RECORDING}.wav@{file_hash(path)}",
        **machine(),
    }
    return made | {"signature": "|".join(f"{key}:{value}" for key, value in facts.items())}


def label(recogniser: str) -> str:
    """Return a recogniser's name for tables, with the version of its package."""
    name, _, model = recogniser.partition(":")
    (package,) = packages_distributions()[all_recognisers()[name].PACKAGE]
    return f"{name}:{Path(model).name} ({package} {version(package)})"


@click.command(help=__doc__)
@click.option("--recogniser", default="auto", show_default=True)
def main(recogniser: str) -> None:
    """Measure and print one row for each number of languages."""
    recogniser = resolve(recogniser)
    for to in ((), LANGUAGES[:1], LANGUAGES):
        click.echo(json.dumps(row(recogniser, to), ensure_ascii=False))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
