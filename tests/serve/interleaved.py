"""Finals of sessions that share a model, against those of sessions that have it to themselves.

By hand, on a model of one's own and on sentences from a file::

    python -m tests.serve.interleaved MODEL.gguf --texts SENTENCES.txt --target de
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.formats.read import prefixes
from redraft.captions.session import EMPTY
from redraft.decoding.drive import run
from redraft.decoding.types import ROOT, TARGET, Asking, Draft, Rows
from redraft.serve.lanes import Answer, Lane, SlotPool
from redraft.serve.protocol import Wanted
from redraft.serve.scheduler import Load, PassReport, Scheduler, budget
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import CURVE

#: Methods with options that make their acceptance exact.
EXACT = {"ar": {}, "ssbd": {"beta": 0}, "redraft": {"beta": 0}, "pld": {}}


@dataclass(slots=True)
class Found:
    """Finals of one session."""

    finals: dict[str, str] = field(default_factory=dict)

    def keep(self, events: Sequence[Event]) -> None:
        """Note what has ended an utterance; an empty translation is reported in place of a caption."""
        self.finals |= {each.utterance or "": "" for each in events if _is_empty(each)}
        self.finals |= {each.utterance: each.text for each in events if isinstance(each, Caption) and each.final}


def _is_empty(event: Event) -> bool:
    return isinstance(event, Failure) and event.message == EMPTY


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a comparison.

    Attributes:
        finals: how many there were of interleaved sessions.
        different: how many of them are different from each other.
        differing: how many are not those of the solo runs.
        leads: for each of these, the least by which the best token led in log probability; floats are added in another
            order where others share the pass, so that a token which leads by next to nothing may fall behind.
        passes, most_requests: how many passes there were, and the most sessions that shared one.
    """

    finals: int
    different: int
    differing: int
    leads: tuple[float, ...]
    passes: int
    most_requests: int


def talks(sentences: Sequence[str], sessions: int, lag: int = 3) -> list[list[Update]]:
    """A stream for every session: its share of the sentences, each revealed some words at a time."""
    found: list[list[Update]] = [[] for _ in range(sessions)]
    for number, sentence in enumerate(sentences):
        parts = prefixes(sentence, lag)
        found[number % sessions] += [
            Update(str(number), seq, text, seq == len(parts) - 1) for seq, text in enumerate(parts)
        ]
    return found


def compare(
    path: Path,
    streams: Sequence[Sequence[Update]],
    targets: Sequence[str],
    *,
    slots: int = 32,
    max_tokens: int = 128,
    exact: bool = True,
    backend: Callable[[Path, LlamaOptions], LlamaCpp] = LlamaCpp,
) -> Outcome:
    """Run all streams on one scheduler, then each alone; sessions take turns in methods and languages.

    Args:
        path: the model.
        streams: the updates of every session.
        targets: languages.
        slots: how many sessions the model's cache holds at a time.
        max_tokens: the most tokens of a translation.
        exact: see `LlamaOptions`.
        backend: what opens the model that is shared.
    """
    options = partial(LlamaOptions, context_length=256, threads=1, gpu_layers=0, exact=exact)
    methods = list(EXACT)
    wishes = [
        Wanted(
            targets=(targets[number // len(methods) % len(targets)],),
            method=(name := methods[number % len(methods)]),
            options=EXACT[name],
            max_tokens=max_tokens,
        )
        for number in range(len(streams))
    ]
    shared = backend(path, options(slots=slots))
    together, passes = _together(shared, streams, wishes, slots)
    shared.close()
    single = LlamaCpp(path, options())
    smallest: list[float] = []
    for wish, stream, found in zip(wishes, streams, together, strict=True):
        alone, leads = _alone(single, stream, wish)
        wrong = [name for name, text in alone.finals.items() if found.finals.get(name) != text]
        smallest += [round(leads[name], 5) for name in wrong]
    single.close()
    texts = [text for found in together for text in found.finals.values()]
    most = max(each.requests for each in passes)
    return Outcome(len(texts), len(set(texts)), len(smallest), tuple(smallest), len(passes), most)


def _service(model: LlamaCpp) -> Service:
    return Service({TARGET: model}, ServeSettings(methods=tuple(EXACT), max_tokens=128), CURVE)


def _together(
    model: LlamaCpp, streams: Sequence[Sequence[Update]], wishes: Sequence[Wanted], slots: int
) -> tuple[list[Found], list[PassReport]]:
    backends, passes, service = {TARGET: model}, list[PassReport](), _service(model)
    load = Load(1.0, CURVE)
    scheduler = Scheduler(backends, SlotPool(backends, slots), load, budget(CURVE), passes.append)
    found = [Found() for _ in streams]

    def answered(place: int, _: Lane, answer: Answer) -> None:
        found[place].keep(answer.events)

    lanes: list[Lane] = []
    for place, wish in enumerate(wishes):
        lanes += service.lanes(wish, partial(answered, place))
        scheduler.add(lanes[place])
    chance, left = random.Random(0), [list(stream) for stream in streams]
    while any(left):
        place = chance.choice([place for place, updates in enumerate(left) if updates])
        scheduler.offer(lanes[place], left[place].pop(0), scheduler.clock())
        if chance.random() < 0.3:  # faster than the model, so that passes are full and updates are passed over
            scheduler.step()
    while scheduler.step():
        pass
    return found, passes


def _alone(model: LlamaCpp, stream: Sequence[Update], wish: Wanted) -> tuple[Found, dict[str, float]]:
    """Finals, and by utterance the smallest lead that the best logit had over the next."""
    (lane,) = _service(model).lanes(wish, lambda *_: None)
    slot, found, leads = model.open_slot(), Found(), dict[str, float]()
    for update in stream:
        watched: list[float] = []
        found.keep(run(_watched(lane.translation.translate(update), watched), model, slot))
        leads[update.utterance] = min([*watched, leads.get(update.utterance, float("inf"))])
    model.close_slot(slot)
    return found, leads


def _watched(asking: Asking[list[Event]], leads: list[float]) -> Asking[list[Event]]:
    rows: Rows | None = None
    while True:
        try:
            score = asking.send(rows)  # type: ignore[arg-type]  # it starts by being sent None
        except StopIteration as stop:
            return stop.value
        rows = yield score
        leads += _leads(score.draft, rows)


def _leads(draft: Draft, rows: Rows) -> Iterator[float]:
    """Those of the rows that decide: after the prefix, and after every token of the draft that is kept."""
    for node in range(ROOT, len(draft)):
        (best, first), (_, second) = rows.top_k(node, 2)
        yield first - second
        if node + 1 < len(draft) and draft.tokens[node + 1] != best:
            return


def _sentences(file: Path | None) -> Iterator[str]:
    if file is not None:
        yield from (line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description="Finals of interleaved sessions against those of solo runs.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="sentences, one a line")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--target", action="append", help="repeat for several")
    parser.add_argument("--inexact", action="store_true", help="as a server without the setting exact")
    arguments = parser.parse_args()
    streams = talks(list(_sentences(arguments.texts)), arguments.sessions)
    print(compare(arguments.model, streams, arguments.target or ["de", "ja", "zh"], exact=not arguments.inexact))


if __name__ == "__main__":
    main()
