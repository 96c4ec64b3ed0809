"""What cutting a recogniser's text into sentences changes: quality, lag and flicker, with and without `--sentences`.

The talks of ACL 60/60 (development set) are cut as a recogniser with endpoints cuts them: an utterance ends at a pause
of half a second, of a quarter once it is 8 seconds long, and at 15 seconds in any case.  Words come every half second.
One talk has measured word times, and so its own pauses; in the others a segment's characters all take the same time, so
only pauses between segments count.  The recordings are those in the package moonshine-voice, and were recognised by it.

Captions are aligned to the reference segments by OmniSTEval.  Intervals (95 %) are bootstrapped: of quality and DAL
over segments, of NE over stretches of ten seconds; with sentences they are of the difference from without, on the same
segments or stretches.

REDRAFT_DATA=FOLDER python -m redraft_bench.scripts.sentences --to de --to ja > benchmarks/results/sentences.jsonl
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_backend
from redraft.captions.events import Update
from redraft.decoding.backend import Backend
from redraft.models import shipped_path
from redraft.signature import signature
from redraft.speech.audio import RATE, Samples, file_blocks, library
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from redraft.speech.sentences import Sentences
from redraft_bench.eval.bootstrap import Array, Statistic, difference, interval, ratio
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.delays import delays, join, split, unit
from redraft_bench.eval.latency import dal
from redraft_bench.eval.measure import compare, open_runs
from redraft_bench.eval.quality import statistics
from redraft_bench.eval.record import Record
from redraft_bench.eval.stream import Segment, Stream
from redraft_bench.eval.talks import NAME, RECOGNISED, talk_stream

#: Seconds between two updates; a pause that ends an utterance, and from which length on half of it does; its maximum.
STEP, PAUSE, LONG, LONGEST = 0.5, 0.5, 8.0, 15.0
#: Seconds of a stretch, within which retractions are counted together.
STRETCH = 10.0
RECORDINGS = ("two_cities", "beckett", "endgame_nagg_nell")


@dataclass(frozen=True, slots=True)
class Heard:
    """An update, or None for silence, at a time in seconds of audio."""

    now: float
    update: Update | None


def words_of(segments: Iterable[Segment]) -> Iterator[tuple[str, float, float]]:
    """Yield the words of a talk, each with its start and end in seconds."""
    for segment in segments:
        end = segment.start or 0.0
        for before, update in pairwise((Update(segment.utterance, 0, ""), *segment.updates)):
            word = update.text[len(before.text) :].strip()
            start, end = end, update.time or end
            if word:
                yield word, start, end


def utterances(words: Sequence[tuple[str, float, float]]) -> Iterator[Heard]:
    """Yield what a recogniser with endpoints sends for a talk; it reads every word correctly."""
    now, name, first = 0.0, 0, 0  # the first word of the utterance
    while first < len(words):
        last, seq, shown = first, 0, ""
        while True:
            now += STEP
            ended = _end(words, first, now)
            while last < len(words) and words[last][2] <= now and last < (len(words) if ended is None else ended):
                last += 1
            text = " ".join(word for word, _, _ in words[first:last])
            if ended is not None and last >= ended:
                yield Heard(now, Update(str(name), seq, text, True, words[ended - 1][2]))
                break
            if text and text != shown:
                yield Heard(now, Update(str(name), seq, text, False, now if seq else words[first][1]))
                seq, shown = seq + 1, text
            else:
                yield Heard(now, None)
        name, first = name + 1, last


def _end(words: Sequence[tuple[str, float, float]], first: int, now: float) -> int | None:
    """Return the word before which the utterance ends, if that is known by now."""
    for place in range(first, len(words)):
        _, _, end = words[place]
        if end > now:
            return None
        length = end - words[first][1]
        pause = PAUSE if length < LONG else PAUSE / 2
        following = words[place + 1][1] if place + 1 < len(words) else float("inf")
        if length >= LONGEST or (following - end >= pause and now - end >= pause):
            return place + 1
    return None


def recognised(name: str) -> list[Heard]:
    """Return what Moonshine sends for a recording."""
    samples = 0

    def counted() -> Iterator[Samples]:
        nonlocal samples
        for block in file_blocks(str(Path(library("moonshine_voice").get_assets_path()) / f"{name}.wav")):
            samples += len(block)
            yield block

    opened: Any = open_recogniser("moonshine")
    opened._clock = lambda: 0.0  # a pass every half second of audio, however busy this machine is
    items = ((samples / RATE, item) for item in transcribe(counted(), opened))
    return [Heard(now, item) for now, item in items if isinstance(item, Update)]


def captioned(heard: Iterable[Heard], *, sentences: bool) -> Iterator[Update]:
    """Yield the updates that are translated; their times are those at which they are known."""
    cut, now = Sentences(), 0.0
    for each in heard:
        now = each.now
        made = [each.update] if each.update else []
        if sentences:
            made = [item for update in made for item in cut.update(update) if isinstance(item, Update)]
            made += cut.passed(now)
        yield from (replace(update, time=round(now, 3)) for update in made)
    yield from (replace(item, time=round(now, 3)) for item in cut.finish() if isinstance(item, Update))


def as_stream(name: str, recordings: dict[str, Sequence[Heard]], *, sentences: bool) -> Stream:
    """Return what is translated as a stream."""
    segments = []
    for recording, heard in recordings.items():
        updates = list(captioned(heard, sentences=sentences))
        for utterance, found in groupby(updates, key=lambda update: update.utterance):
            named = tuple(replace(update, utterance=f"{recording}-{utterance}") for update in found)
            segments.append(Segment(named, recording=recording))
    return Stream(name, tuple(segments))


def translated(backend: Backend, stream: Stream, language: str) -> list[Record]:
    """Translate a stream as `redraft listen` does."""
    (run,) = open_runs(backend, [Contender("redraft", language, hold_back=True)])
    with closing(run.system):
        compare([run], stream.updates)
    return run.records


def aligned(records: Sequence[Record], stream: Stream, talks: Stream, language: str) -> list[tuple[str, float | None]]:
    """Return the caption of each segment of the talks, aligned by OmniSTEval, and its DAL in seconds."""
    from omnisteval.io import load_resegmentation_inputs
    from omnisteval.resegment import resegment

    lines: dict[str, dict[str, Any]] = {}
    for record, caption in zip(records, delays(records, stream, language), strict=True):
        recording = stream.segments[record.segment].recording
        line = lines.setdefault(recording, {"source": f"{recording}.wav", "units": [], "delays": []})
        line["units"] += caption.units
        line["delays"] += [1000 * each for each in caption.delays]
    for line in lines.values():
        line |= {"prediction": join(line.pop("units"), language), "elapsed": line["delays"], "source_length": 0}
    lengths = [(each.end or 0.0) - (each.start or 0.0) for each in talks.segments]
    places = [
        {"wav": f"{each.recording}.wav", "offset": each.start, "duration": length}
        for each, length in zip(talks.segments, lengths, strict=True)
    ]
    references = [join(split(each.references[language], language), language) for each in talks.segments]
    characters = unit(language) == "char"
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / each for each in ("segments.yaml", "references.txt", "instances.log")]
        texts = [json.dumps(places), "\n".join(references), "\n".join(map(json.dumps, lines.values()))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text + "\n", encoding="utf-8")
        inputs = load_resegmentation_inputs(str(files[0]), None, str(files[1]), str(files[2]), char_level=characters)
        found, _ = resegment(*inputs, char_level=characters, lang=language)
    return [
        (each.prediction, dal([time / 1000 for time in each.emission_cu or ()], length))
        for each, length in zip(found, lengths, strict=True)
    ]


def erased(records: Sequence[Record], stream: Stream, length: int) -> Array:
    """Return retracted and final tokens of what was shown, by stretches of all recordings."""
    found: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for record in records:
        for step in record.steps:
            sums = found[stream.segments[record.segment].recording, int((step.time or 0.0) / STRETCH)]
            sums[0] += step.erased[1]
            sums[1] += step.length[1] if step.final else 0
    names = dict.fromkeys(segment.recording for segment in stream.segments)
    return np.array([found[name, place] for name in names for place in range(length)], dtype=np.float64)


def measured(
    backend: Backend, name: str, recordings: dict[str, Sequence[Heard]], language: str, talks: Stream | None
) -> Iterator[dict[str, object]]:
    """Yield the rows of a language: without sentences, and with."""
    length = 1 + int(max(heard[-1].now for heard in recordings.values()) / STRETCH)
    sums: list[dict[str, tuple[Array, Statistic]]] = []
    for sentences in (False, True):
        stream = as_stream(name, recordings, sentences=sentences)
        records = translated(backend, stream, language)
        sums.append({"ne_shown": (erased(records, stream, length), ratio)})
        if talks is not None:
            found = aligned(records, stream, talks, language)
            references = [each.references[language] for each in talks.segments]
            sums[-1] |= statistics([text for text, _ in found], references, language)
            sums[-1]["dal"] = np.array([(lag or 0.0, lag is not None) for _, lag in found], dtype=np.float64), ratio
        figures: dict[str, object] = {}
        for figure, (table, statistic) in sums[-1].items():
            bounds = difference(table, sums[0][figure][0], statistic) if sentences else interval(table, statistic)
            figures[figure] = round(statistic(table.sum(axis=0)), 3)
            figures[f"{figure}_interval"] = [round(bound, 3) for bound in bounds]
        settings: dict[str, Any] = {"method": "redraft", "hold_back": True}
        line = signature(shipped_path("demo"), name, stream.hash, **settings)
        yield {
            "data": name,
            "target_language": language,
            "sentences": sentences,
            "captions": len(records),
            "source_words": sum(len(record.steps[-1].source.split()) for record in records),
            **figures,
            "signature": line,
        }


def heard_talks(limit: int) -> tuple[Stream, dict[str, Sequence[Heard]]]:
    """Return the reference segments of the talks, and what a recogniser sends for each."""
    talks = dict.fromkeys(segment.recording for segment in talk_stream(lag=0).segments)
    found: list[Segment] = []
    heard: dict[str, Sequence[Heard]] = {}
    for talk in list(talks)[: limit or None]:
        words = "gold" if talk == RECOGNISED else "spread"
        found += talk_stream(talk, words=words, lag=0).segments
        heard[talk] = list(utterances([*words_of(talk_stream(talk, words=words, lag=1).segments)]))
    return Stream(NAME, tuple(found)), heard


@click.command(help=__doc__)
@click.option("--to", multiple=True, default=("de",), show_default=True)
@click.option("--talks", "limit", default=0, help="Number of talks; 0 takes all.")
def main(to: Sequence[str], limit: int) -> None:
    """Measure and print a row for each setting."""
    talks, heard = heard_talks(limit)
    # A process for each recording, since the package's voice activity detector remembers the one before.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = dict(zip(RECORDINGS, pool.map(recognised, RECORDINGS), strict=True))
    sets: list[tuple[str, dict[str, Sequence[Heard]], Stream | None]] = [(NAME, heard, talks)]
    sets += [(name, {name: each}, None) for name, each in found.items()]
    with closing(open_backend("demo", LlamaOptions(context_length=1024, threads=1, slots=1), None)) as backend:
        for language in to:
            for name, recordings, references in sets:
                for row in measured(backend, name, recordings, language, references):
                    click.echo(json.dumps(row, ensure_ascii=False))
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
