"""An update happens whole or not at all: passes that fail, updates that are abandoned, and answers that come late."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft import AsyncTranslator, Caption, Failure, Style, Translator, Update
from redraft.captions.events import Event
from redraft.captions.state import START, Ids, Settings, State
from redraft.captions.translation import Answered
from redraft.decoding.drive import run
from redraft.decoding.method import Method
from redraft.decoding.rules import Exact
from redraft.decoding.types import EMPTY_DRAFT, ROOT, Context, Draft, Drafter, Rows, Score, Verdict
from redraft.engine import stream as streams
from redraft.errors import ModelError
from tests.captions.streams import Stream, showing
from tests.fakes import RandomModel

WORDS = "we saw her duck under the table and left house before it rained".split()
STYLE = Style(template="tower")


def stream(rng: random.Random, finals: float) -> list[Update]:
    """Texts that grow, are revised, shrink and stay; utterances that end, that are cut off others, or never end."""
    now, updates, rest = 0.0, list[Update](), list[str]()
    for utterance in range(rng.randint(1, 4)):
        words, rest, seq = rest, [], 0
        for _ in range(rng.randint(1, 6)):
            kind = rng.random()
            if kind < 0.1:
                words = words[: rng.randint(0, len(words))]
            elif kind < 0.3 and words:
                words = [*words[:-1], rng.choice(WORDS)]
            elif kind < 0.9 or not words:
                words = words + [rng.choice(WORDS) for _ in range(rng.randint(1, 3))]
            now += rng.choice([0.2, 0.5, 2.2])
            updates.append(Update(str(utterance), seq, " ".join(words), False, round(now, 2)))
            seq += rng.randint(1, 2)
        if rng.random() < finals:
            if rng.random() < 0.3 and len(words) > 2:
                place = rng.randint(1, len(words) - 1)
                words, rest = words[:place], words[place:]
            updates.append(Update(str(utterance), seq, " ".join(words) or "we", True, round(now, 2)))
    return updates


class Failing(RandomModel):
    """Some of its passes fail."""

    def __init__(self, rng: random.Random, share: float) -> None:
        super().__init__(rng.randint(0, 50), end_bias=rng.choice([0.0, 1.0]))
        self.rng, self.share = rng, share

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        if self.rng.random() < self.share:
            raise ModelError("the server did not answer")
        return super().score(requests)


@given(st.integers(0, 100_000), st.sampled_from([0.05, 0.2]), st.sampled_from([["de"], ["de", "fr"]]))
def test_final_is_answered_once(seed: int, share: float, to: list[str]) -> None:
    rng = random.Random(seed)
    translator = Translator(Failing(rng, share), to, style=STYLE, options={"max_tokens": 30})
    ended: set[str] = set()
    for update in stream(rng, 1.0):
        events = translator.translate(update)
        assert ended.isdisjoint(each.utterance for each in events if isinstance(each, Caption))
        if update.final:
            captions = [each for each in events if isinstance(each, Caption) and each.final]
            failed = any(isinstance(each, Failure) and each.utterance == update.utterance for each in events)
            assert [each.language for each in captions if each.utterance == update.utterance] == to or failed
            ended.add(update.utterance)
    assert all(event.utterance not in ended for event in translator.rest() if isinstance(event, Caption))


def answered(stream: Stream, state: State, update: Update) -> Answered:
    """The answer to an update, after the rest of the utterance that it leaves."""
    translation, before = stream.translations[0], list[Event]()
    if state.left_by(update):
        before, state = run(translation.rest(state), stream.model, 0)
    events, state = run(translation.translate(state, update), stream.model, 0)
    return [*before, *events], state


@given(st.integers(0, 100_000), st.sampled_from(["ar", "ssbd", "redraft", "aasd"]), st.sampled_from([0.3, 0.7]))
def test_abandoned_update_leaves_no_trace(seed: int, method: str, abandons: float) -> None:
    """Neither in what others get nor in the state, wherever it was abandoned."""
    rng = random.Random(seed)
    model = RandomModel(seed % 50, end_bias=rng.choice([0.0, 1.0]))
    line = Stream(model, method=method, options={}, display=showing(2, 0.5), max_tokens=24)
    translation, state, clean = line.translations[0], START, START
    for update in stream(rng, 0.7):
        if not update.final and rng.random() < abandons:
            asking, rows = translation.translate(state, update), None
            for _ in range(rng.randint(1, 12)):
                try:
                    score = asking.send(rows)  # type: ignore[arg-type]
                except StopIteration:
                    break
                (rows,) = model.score([(0, score)])
            asking.close()
            if state.update and state.update.utterance == update.utterance:
                assert translation.failed(state, update) == state
            continue
        events, state = answered(line, state, update)
        expected, clean = answered(line, clean, update)
        assert (events, replace(state, memory={})) == (expected, replace(clean, memory={}))


class Seen:
    """What a method of a plug-in has seen of the model; nothing may copy all of it."""

    def __init__(self) -> None:
        self.rows, self.decodings = dict[Ids, int](), 0

    def __deepcopy__(self, _: object) -> NoReturn:
        raise AssertionError("it grows")


class Remembering(Drafter):
    """Notes every row in place, and counts its decodings in an attribute."""

    def __init__(self, seen: Seen) -> None:
        self.seen, self.prefix = seen, Ids()
        seen.decodings += 1

    def propose(self, context: Context) -> Draft:
        self.prefix = (*context.prompt.ids, *context.output)
        return EMPTY_DRAFT

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        self.seen.rows[self.prefix] = rows.argmax(ROOT)


@given(st.integers(0, 100_000))
def test_memory_of_a_plug_in(seed: int) -> None:
    """What a drafter assigns goes with an abandoned update, and what it changes in place stays."""
    model = RandomModel(seed % 50)
    found = Method("remembering", "", "", "", "", lambda setup: (Remembering(setup.recall(Seen)), Exact()))
    line = Stream(model)
    line.translations[0] = replace(line.translations[0], settings=Settings(found, {"max_tokens": 8}))
    state, clean, abandoned = START, START, set[Ids]()
    for update in stream(random.Random(seed), 0.7):
        asking = line.translations[0].translate(state, update)
        with suppress(StopIteration):
            first = next(asking)
            asking.send(model.score([(0, first)])[0])
            asking.close()
            abandoned |= {first.prefix} if state.memory else set()  # no stream has a memory before its first update
        _, state = answered(line, state, update)
        _, clean = answered(line, clean, update)
        kept, expected = state.memory.get(Seen), clean.memory.get(Seen)
        if isinstance(kept, Seen) and isinstance(expected, Seen):
            assert (kept.decodings, kept.rows) == (expected.decodings, {**expected.rows, **kept.rows})
            assert abandoned <= kept.rows.keys()


@given(st.integers(0, 100_000), st.booleans())
def test_every_last_text_is_answered_whole(seed: int, abandons: bool) -> None:
    """Utterances end with a final text, another utterance or the stream; updates in between are abandoned."""
    rng = random.Random(seed)
    model = RandomModel(seed % 50, end_bias=2.0)
    line = Stream(model, method="redraft", options={}, display=showing(2, 0.5), max_tokens=60)
    translation, state, found = line.translations[0], START, list[Event]()
    last: dict[str, Update] = {}
    updates = stream(rng, 0.5)
    for update, after in zip(updates, [*updates[1:], None], strict=True):
        overtaken = after is not None and after.overtakes(update)
        if abandons and overtaken and rng.random() < 0.5:
            asking = translation.translate(state, update)
            next(asking, None)
            asking.close()
            continue
        last[update.utterance] = update
        events, state = answered(line, state, update)
        found += events
    events, state = run(translation.rest(state), model, 0)
    found += events
    captions = [each for each in found if isinstance(each, Caption)]
    assert [each.utterance for each in captions] == sorted(each.utterance for each in captions)
    for name, update in last.items():
        mine = [each for each in captions if each.utterance == name]
        failed = any(isinstance(each, Failure) and each.utterance == name for each in found)
        assert failed or (mine[-1].seq, mine[-1].final, mine[-1].unstable) == (update.seq, update.final, "")


def test_final_after_failure_is_not_shown_by_the_next_utterance() -> None:
    broken = [False]

    class Away(RandomModel):
        def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
            if broken[0]:
                raise ModelError("the server did not answer")
            return super().score(requests)

    translator = Translator(Away(3), ["de"], style=STYLE, options={"max_tokens": 30})
    translator.translate(Update("1", 0, "we saw her"))
    broken[0] = True
    (failure,) = translator.translate(Update("1", 1, "we saw her duck", final=True))
    broken[0] = False
    assert isinstance(failure, Failure)
    assert {each.utterance for each in translator.translate(Update("2", 0, "and left"))} == {"2"}


@pytest.mark.parametrize("failing", range(1, 8))
def test_rest_and_update_fail_apart(failing: int) -> None:
    """One pass fails: either the rest of the first utterance or the final text of the second gets its caption."""

    class Once(RandomModel):
        passes = -1000

        def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
            self.passes += 1
            if self.passes == failing:
                raise ModelError("the server did not answer")
            return super().score(requests)

    model = Once(3, end_bias=1.0)
    translator = Translator(model, ["de"], style=STYLE, options={"max_tokens": 30})
    assert [each.utterance for each in translator.translate(Update("1", 0, "we saw her duck"))] == ["1"]
    model.passes = 0
    events = translator.translate(Update("2", 0, "and left the house.", final=True))
    assert [each.utterance for each in events] == ["1", "2"]
    assert sum(isinstance(each, Failure) for each in events) == 1 and model.passes >= failing


class Slow(Failing):
    """Waits before passes."""

    def __init__(self, rng: random.Random, seconds: float, share: float) -> None:
        super().__init__(rng, share)
        self.wait = threading.Event()
        self.seconds = seconds

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        self.wait.wait(self.seconds)
        return super().score(requests)


@pytest.mark.parametrize("share", [0.0, 0.4])  # a pass that fails is run again
@pytest.mark.parametrize("seed", range(20))
def test_slow_answers(seed: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates overtake each other, and pauses are short: the last text of every utterance is shown whole, or failed."""
    rng = random.Random(seed)
    monkeypatch.setattr(streams, "LONG_PAUSE", 0.01)
    updates = [replace(each, time=None) for each in stream(rng, 0.4)]

    async def spoken() -> list[Event]:
        async def source():
            for update in updates:
                await asyncio.sleep(rng.choice([0, 0, 0.002, 0.01, 0.02]))
                yield update

        model = Slow(rng, rng.choice([0.0005, 0.002]), share)
        async with AsyncTranslator(Translator(model, ["de"], style=STYLE, options={"max_tokens": 40})) as translator:
            return [event async for event in translator.translate(source())]

    found = asyncio.run(spoken())
    last = {each.utterance: each for each in updates}
    failed = {(each.utterance, each.seq) for each in found if isinstance(each, Failure)}
    for name, update in last.items():
        mine = [each for each in found if isinstance(each, Caption) and each.utterance == name]
        assert sum(each.final for each in mine) == update.final or (name, update.seq) in failed
        if mine and name not in {utterance for utterance, _ in failed}:
            assert (mine[-1].seq, mine[-1].unstable) == (update.seq, "")
