"""What `--source` and `--sentences` save on the text of real recognisers: passes, time, flicker and lag.

    python -m benchmarks.sources talk.jsonl --to de --to ja >> benchmarks/results/sources.jsonl

Each file holds updates with times (docs/streams.md), such as those of a recogniser.  Times are CPU seconds of one
thread.  Lags are medians over the units of the final captions, in seconds: when a unit was first shown, and when it was
last changed, against its place in the utterance, if all its units take the same time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from redraft.backends.llamacpp import LlamaOptions
from redraft.backends.load import open_backend
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.stabilise import Mask
from redraft.decoding.backend import Backend
from redraft.decoding.types import common_prefix
from redraft.models import shipped_path
from redraft.signature import signature
from redraft.speech.sentences import Sentences
from redraft.translator import Translator
from redraft_bench.eval.delays import split
from redraft_bench.eval.metrics import Erasure
from redraft_bench.eval.stream import Stream

POLICIES = ("raw", "hold:0", "hold:1", "stable")
METHODS = ("ar", "ssbd")


@dataclass(slots=True)
class Display:
    """The captions of an utterance, and when their units were shown.

    Attributes:
        begun: time of its first update.
        texts: ids of the latest whole translation and of what is shown of it.
        units: units shown.
        first: when there were first so many units.
        last: when each unit was last changed.
    """

    begun: float
    texts: tuple[list[int], list[int]] = ([], [])
    units: list[str] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)


class Watcher:
    """Translates a stream, and counts.

    Args:
        backend: the model, with a free slot.
        to: target language.
        method: decoding method.
        source: source policy.
    """

    def __init__(self, backend: Backend, to: str, method: str, source: str) -> None:
        self.translator = Translator(backend, [to], method=method, mask=Mask(margin=0.0), source=source)
        self.to, self.seconds, self.now = to, 0.0, 0.0
        self.output, self.display = Erasure(), Erasure()
        self.displays: dict[str, Display] = {}
        self.lags: tuple[list[float], list[float]] = ([], [])

    def take(self, update: Update, now: float) -> None:
        """Translate an update that comes at ``now`` seconds."""
        self.now = now
        self.displays.setdefault(update.utterance, Display(now))
        started = time.thread_time()
        events = self.translator.translate(update)
        self.seconds += time.thread_time() - started
        self.see(events)

    def see(self, events: Sequence[Event]) -> None:
        """Count what captions show."""
        for event in events:
            if isinstance(event, Failure):
                print(event.message, file=sys.stderr)
            else:
                self._see(event)

    def _see(self, caption: Caption) -> None:
        shown = self.displays[caption.utterance]
        tokenize = self.translator.backend.tokenize
        texts = tokenize(caption.text + caption.unstable), tokenize(caption.text)
        self.output.step(shown.texts[0], texts[0])
        self.display.step(shown.texts[1], texts[1])
        units = split(caption.text, self.to)
        kept = common_prefix(shown.units, units)
        shown.last[kept:] = [self.now] * (len(units) - kept)
        shown.first += [self.now] * (len(units) - len(shown.first))
        shown.units, shown.texts = units, texts
        if caption.final:
            self.output.final += len(texts[0])
            self.display.final += len(texts[1])
            pace = (self.now - shown.begun) / max(1, len(units))
            for lags, times in zip(self.lags, (shown.first, shown.last), strict=True):
                lags += [when - shown.begun - pace * (place + 1) for place, when in enumerate(times[: len(units)])]


def measured(
    backend: Backend, stream: Stream, to: str, method: str, source: str, *, sentences: bool
) -> dict[str, object]:
    """Return the row of one setting."""
    watcher = Watcher(backend, to, method, source)
    cut = Sentences()
    with closing(watcher.translator):
        for update in stream.updates:
            now = watcher.now if update.time is None else update.time
            for item in cut.update(update) if sentences else [update]:
                if isinstance(item, Update):
                    watcher.take(item, now)
        for item in cut.finish():
            if isinstance(item, Update):
                watcher.take(item, watcher.now)
        tally = watcher.translator.translation(to).tally
        line = signature(shipped_path("demo"), stream.name, stream.hash, margin=0, threads=1)
        return {
            "method": method,
            "source": source,
            "sentences": sentences,
            "data": stream.name,
            "target_language": to,
            "updates": len(stream.updates),
            "passes": tally.passes,
            "seconds": round(watcher.seconds, 2),
            "ne": round(watcher.output.value, 3),
            "ne_shown": round(watcher.display.value, 3),
            "lag_first": round(statistics.median(watcher.lags[0]), 2),
            "lag_for_good": round(statistics.median(watcher.lags[1]), 2),
            "signature": line,
        }


def settings() -> Iterator[tuple[str, str, bool]]:
    """Yield method, source policy, and whether the text is cut into sentences."""
    for source in POLICIES:
        for method in METHODS:
            yield method, source, False
    yield "ssbd", "stable", True


def main() -> None:
    """Print a row for each stream, language and setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--to", action="append", required=True)
    chosen = parser.parse_args()
    with closing(open_backend("demo", LlamaOptions(context_length=1024, threads=1, slots=1), None)) as backend:
        for path in chosen.file:
            stream = Stream.load(path)
            for to in chosen.to:
                for method, source, sentences in settings():
                    print(json.dumps(measured(backend, stream, to, method, source, sentences=sentences)), flush=True)


if __name__ == "__main__":
    main()
