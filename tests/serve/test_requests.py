"""One-shot requests beside sessions: answers as alone, waiting, slots that are taken over, clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from redraft import deadlines
from redraft.captions.events import Update
from redraft.captions.state import START
from redraft.decoding.types import Score
from redraft.engine.chat import Answered
from redraft.engine.lanes import Failed, Once
from redraft.protocol import Wanted
from redraft.protocol.codes import Refused
from redraft.serve import service
from tests.serve.fakes import CachedModel, Rig, alone
from tests.serve.servers import Running, running

TEXTS = ("we saw her duck", "under the old table", "and it was there", "again and again", "we all looked")


def text_of(text: str) -> str:
    return alone(1, [Update("1", 0, text, True)])[0].text


class Asked:
    """A scheduler with requests, and their results in the order in which they came."""

    def __init__(self, slots: int = 4, model: CachedModel | None = None, *, exact: bool = True) -> None:
        self.rig, self.exact = Rig(model or CachedModel(1), slots=slots), exact
        (self.translation,) = self.rig.service.translations(Wanted(targets=("de",)), exact=exact)
        self.results: list[Any] = []

    def ask(self, text: str) -> Once:
        request = Once(lambda: service._task(self.translation, START, text, self.exact), self.results.append)
        self.rig.scheduler.ask(request)
        return request

    def texts(self) -> list[str]:
        return [result[0].text for result in self.results]


def test_same_as_alone_in_order() -> None:
    asked = Asked(slots=2)  # one at a time
    for text in TEXTS:
        asked.ask(text)
    asked.rig.run()
    assert asked.texts() == [text_of(text) for text in TEXTS]
    assert max(each.requests for each in asked.rig.passes) == 1
    assert (asked.rig.scheduler.requests, asked.rig.scheduler.lanes, asked.rig.scheduler.pool.lent) == (0, 0, 0)


def test_half_of_the_slots() -> None:
    asked = Asked(slots=6)
    for text in TEXTS:
        asked.ask(text)
    asked.rig.run()
    assert max(each.requests for each in asked.rig.passes) == 3
    assert sorted(asked.texts()) == sorted(map(text_of, TEXTS))


def test_one_at_a_time_while_somebody_speaks() -> None:
    asked = Asked(slots=8)
    (lane,) = asked.rig.lanes()
    asked.rig.offer(lane, Update("1", 0, "we saw"))
    asked.rig.run()
    for text in TEXTS:
        asked.ask(text)
    asked.rig.run()
    assert {each.requests for each in asked.rig.passes} == {1}
    asked.rig.passes.clear()
    asked.rig.clock.now += 60
    for text in TEXTS:
        asked.ask(text)
    asked.rig.run()
    assert max(each.requests for each in asked.rig.passes) == 4


def test_no_session_is_kept_out() -> None:
    asked = Asked()
    for text in TEXTS * 3:
        asked.ask(text)
    while asked.rig.scheduler.step():
        asked.rig.clock.now += 0.5
    assert asked.rig.scheduler.load.busy(asked.rig.clock()) == 0


def test_answer_is_the_next_draft() -> None:
    asked = Asked()
    passes = []
    for text in ("we saw her duck", "we saw her duck", "we saw her duck under"):
        before = len(asked.rig.passes)
        asked.ask(text)
        asked.rig.run()
        passes.append(len(asked.rig.passes) - before)
    assert asked.texts() == [text_of(text) for text in ("we saw her duck", "we saw her duck", "we saw her duck under")]
    assert passes[1] == 1 < passes[0]
    assert [len(score.draft) > 0 for score in asked.rig.model.requests].count(True) == 2


def test_slot_with_the_longest_beginning() -> None:
    asked = Asked(slots=8)
    for text in TEXTS[:4]:
        asked.ask(text)
    asked.rig.run()
    new = asked.rig.model.new
    for text in TEXTS[:4]:  # in every slot is another one
        asked.ask(text)
        asked.rig.run()
        assert new[-1] < 2 + len(asked.rig.model.tokenize(text_of(text)))
    assert asked.texts()[4:] == [text_of(text) for text in TEXTS[:4]]


def test_another_text_is_no_draft() -> None:
    asked = Asked(slots=2)
    asked.ask(TEXTS[0])
    asked.ask(TEXTS[1])
    asked.rig.run()
    assert not any(score.draft for score in asked.rig.model.requests)


def test_slot_of_a_session_is_cleared() -> None:
    asked = Asked(slots=1)
    (lane,) = asked.rig.lanes()
    asked.rig.offer(lane, Update("1", 0, TEXTS[0], True))
    asked.rig.run()
    asked.rig.scheduler.remove(lane)
    before = len(asked.rig.model.new)
    asked.ask(TEXTS[0])
    asked.rig.run()
    assert asked.rig.model.new[before] > len(TEXTS[0])


def test_dropped() -> None:
    asked = Asked(slots=2)
    first, second = asked.ask(TEXTS[0]), asked.ask(TEXTS[1])
    asked.rig.scheduler.step()
    asked.rig.scheduler.drop(first)
    before = len(asked.rig.passes)
    asked.rig.run()
    assert asked.texts() == [text_of(TEXTS[1])] and first.idle and second.idle
    assert len(asked.rig.passes) > before and asked.rig.scheduler.pool.lent == 0


def test_failing_pass() -> None:
    def broken(scores: Sequence[Score]) -> bool:
        return any(score.prefix[: len(bad)] == bad for score in scores)

    model = CachedModel(1, broken=broken)
    bad = (1, *model.tokenize(TEXTS[1]))
    asked = Asked(slots=8, model=model)
    for text in TEXTS[:3]:
        asked.ask(text)
    asked.rig.run()
    failures = [result for result in asked.results if isinstance(result, Failed)]
    assert [str(failure) for failure in failures] == ["the text could not be translated: the model failed on it"]
    assert sorted(result[0].text for result in asked.results if result not in failures) == sorted(
        text_of(text) for text in (TEXTS[0], TEXTS[2])
    )


def test_wanted_method_has_no_draft() -> None:
    asked = Asked(exact=False)
    for _ in range(2):
        asked.ask(TEXTS[0])
        asked.rig.run()
    assert not any(score.draft for score in asked.rig.model.requests)
    assert asked.texts() == [text_of(TEXTS[0])] * 2


# On a server


def translate(server: Running, *texts: str, **wanted: Any) -> list[dict[str, Answered]]:
    work = server.hub.admission.translate(Wanted(targets=("de", "ja"), **wanted), texts, "")
    return asyncio.run_coroutine_threadsafe(work, server.loop).result(20)


def test_context_is_the_sentence_before() -> None:
    with running() as server:
        (plain,) = translate(server, "we saw. her duck. again")
        (with_context,) = translate(server, "we saw. her duck. again", options={"context": 2})
    assert plain["de"].text == " ".join(map(text_of, ("we saw.", "her duck.", "again")))
    first = len(text_of("we saw."))
    assert with_context["de"].text[:first] == plain["de"].text[:first]
    assert with_context["de"].text != plain["de"].text


def test_cut_sentence() -> None:
    with (
        running() as server,
        pytest.raises(Refused, match="sentence 2 of 2: the translation was cut") as no,
    ):
        translate(server, "... we saw her duck under the table.", options={"max_tokens": 1})
    assert no.value.code == "translation"


def test_too_long() -> None:
    with running() as server, pytest.raises(Refused, match="a sentence is too long") as no:
        translate(server, "It rained. " + "again " * 100)
    assert no.value.code == "option"


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(sessions_per_address=1) as server:
        with server.hub.admission._admitted("one"), pytest.raises(Refused) as no, server.hub.admission._admitted("one"):
            pass
        assert no.value.code == "limit"
        monkeypatch.setattr(service, "_MOST", 1)
        with server.hub.admission._admitted("one"), pytest.raises(Refused) as no:
            translate(server, "we saw")
        assert no.value.code == "capacity"
        assert translate(server, "we saw")[0]["de"].text == text_of("we saw")


def test_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "TURN", 0.05)
    with running() as server:
        monkeypatch.setattr(server.engine.scheduler, "_most_requests", lambda: 0)
        with pytest.raises(Refused, match="no turn came") as no:
            translate(server, "we saw")
        assert no.value.code == "capacity"
        server.engine.call(lambda: None).result(20)
        assert server.engine.scheduler.requests == 0


def test_engine_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as server:
        monkeypatch.setattr(server.engine.scheduler, "step", lambda: 1 / 0)
        with pytest.raises(Refused) as no:
            translate(server, "we saw")
    assert no.value.code == "engine"
