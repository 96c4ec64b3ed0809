"""Sessions that share a real model, in 32-bit floats: their texts never mix."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.formats.read import prefixes
from redraft.captions.translation import UNANSWERED
from redraft.decoding.drive import open_slots, run
from redraft.decoding.types import TARGET, Rows, Score
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import Scheduler
from redraft.protocol import Wanted
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import PassReport

WORDS = "we saw her duck under the old table and it was there again in the rain".split()
#: Methods with options that make their acceptance exact.
EXACT = {"ar": {}, "ssbd": {"beta": 0}, "redraft": {"beta": 0, "hidden_beta": 0}, "pld": {}}
OPTIONS = partial(LlamaOptions, context_length=256, threads=1, gpu_layers=0, exact=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.gguf_models import write_llama

    return write_llama(tmp_path_factory.mktemp("models") / "f32.gguf", facts={"redraft.prompt": "{source}<2{code}>"})


def streams(sessions: int) -> list[list[Update]]:
    """A sentence for every session, revealed three words at a time."""
    chance, found = random.Random(0), []
    for number in range(sessions):
        parts = prefixes(f"{number} {' '.join(chance.choices(WORDS, k=chance.randint(2, 6)))}", 3)
        found.append([Update(str(number), seq, text, seq == len(parts) - 1) for seq, text in enumerate(parts)])
    return found


def wishes(sessions: int) -> Iterator[Wanted]:
    """Sessions take turns in methods and languages."""
    for number in range(sessions):
        method, target = list(EXACT)[number % 4], ("de", "ja")[number // 4 % 2]
        yield Wanted(targets=(target,), method=method, options={**EXACT[method], "max_tokens": 8})


def service(model: LlamaCpp) -> Service:
    return Service({TARGET: model}, ServeSettings(methods=tuple(EXACT)))


def final(answer: Answer) -> str | None:
    """The text that ends an utterance; empty for an empty translation."""
    for event in answer.events:
        if isinstance(event, Caption) and event.final:
            return event.text
        if isinstance(event, Failure) and event.message == UNANSWERED.format("''"):
            return ""
    return None


def together(model: LlamaCpp, sessions: int, slots: int) -> tuple[list[str], list[PassReport]]:
    """Finals of sessions on one scheduler."""
    passes: list[PassReport] = []
    opened = open_slots({TARGET: model}, slots)
    scheduler = Scheduler({TARGET: model}, opened, watch=lambda *done: passes.append(PassReport(*done)))
    found: dict[int, str] = {}

    def answered(session: int, answer: Answer) -> None:
        if (text := final(answer)) is not None:
            found[session] = text

    makes = service(model)
    lanes = [
        Lane(makes.translations(wish)[0], partial(answered, session)) for session, wish in enumerate(wishes(sessions))
    ]
    for lane in lanes:
        scheduler.add(lane)
    chance, left = random.Random(0), streams(sessions)
    while any(left):
        place = chance.choice([place for place, updates in enumerate(left) if updates])
        scheduler.offer(lanes[place], left[place].pop(0), scheduler.clock())
        if chance.random() < 0.3:  # faster than the model, so that passes are full and updates are passed over
            scheduler.step()
    while scheduler.step():
        pass
    return [found[session] for session in range(sessions)], passes


def alone(path: Path, sessions: int) -> list[str]:
    """Finals of sessions that have the model to themselves."""
    model, found = LlamaCpp(path, OPTIONS()), []
    makes = service(model)
    for wish, stream in zip(wishes(sessions), streams(sessions), strict=True):
        lane = Lane(makes.translations(wish)[0], lambda _: None)
        slot, text = model.open_slot(), None
        for update in stream:
            events, lane.state = run(lane.translation.translate(lane.state, update), model, slot)
            text = final(Answer("", update, events, 0.0, lane.state.tally))
        model.close_slot(slot)
        found.append(text or "")
    model.close()
    return found


def test_many_sessions(model: Path) -> None:
    shared = LlamaCpp(model, OPTIONS(slots=32))
    found, passes = together(shared, 80, 32)
    shared.close()
    assert found == alone(model, 80)
    assert len(set(found)) > 60  # so that a mix-up would show
    assert max(each.requests for each in passes) > 20


class Brittle(LlamaCpp):
    """Fails now and then after its cache was changed, where several sessions share a pass."""

    chance, failed = random.Random(1), 0

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        rows = super().score(requests)
        if len(requests) > 1 and self.chance.random() < 0.2:
            self.failed += 1
            raise RuntimeError("the model is broken")
        return rows


def test_failing_passes(model: Path) -> None:
    brittle = Brittle(model, OPTIONS(slots=8))
    found, _ = together(brittle, 40, 8)
    brittle.close()
    assert found == alone(model, 40) and brittle.failed > 5
