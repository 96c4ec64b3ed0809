"""What anybody sees of a caption is a function of its cell: viewers now and later, other servers, and files."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Container
from dataclasses import replace
from typing import Any
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st

from redraft import protocol
from redraft.captions.events import Caption
from redraft.protocol import Frame
from redraft.serve.sessions.broadcast import Broadcast, Outbox
from redraft.serve.sessions.cells import Key, key_of
from tests.serve.fakes import offline

KEYS: list[Key] = [("1", "de"), ("1", "ja"), ("2", "de"), ("3", "ja")]
NAMES = ["partial", "final", "fail", "hide", "show", "pause", "release", "correct", "away", "back", "look"]
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(KEYS)), max_size=40)


class Page:
    """What a viewer's page shows after the messages that it was sent.

    On one connection, none of these is about a caption that is hidden, and no final caption comes again.
    """

    def __init__(self, hidden: Container[Key] = ()) -> None:
        self.finals: dict[Key, str] = {}
        self.partials: dict[Key, str] = {}
        self.outbox: Outbox | None = None
        self.hidden = hidden
        self.sent = dict[Key, str]()

    def connect(self, broadcast: Broadcast) -> None:
        self.outbox = Outbox(1000)
        self.sent.clear()
        broadcast.watch(self.outbox)

    def leave(self, broadcast: Broadcast) -> None:
        if self.outbox is not None:
            broadcast.detach(self.outbox)
            self.outbox = None

    def read(self) -> None:
        while self.look():
            pass

    def look(self) -> bool:
        """Read one message, and return whether there was one."""
        frame = None if self.outbox is None else self.outbox._next()
        if frame is not None:
            self.show(json.loads(frame.text))
        return frame is not None

    def show(self, message: dict[str, Any]) -> None:
        key = message.get("utterance", ""), message.get("language", "")
        assert message["type"] == "hide" or key not in self.hidden
        if message["type"] == "final":
            assert self.sent.get(key) != message["text"]
            self.sent[key] = message["text"]
            self.finals[key] = message["text"]
            self.partials.pop(key, None)
        elif message["type"] == "partial" and key not in self.finals:
            self.partials[key] = message["text"]
        elif message["type"] == "error":
            self.partials.pop(key, None)
        elif message["type"] == "hide":
            self.sent.pop(key, None)
            self.finals.pop(key, None), self.partials.pop(key, None)


def caption(key: Key, text: str, *, final: bool) -> Caption:
    return Caption(key[0], 0, key[1], text, "", final, 0.0, "source")


class Model:
    """What should be seen, kept as plain sets, and the broadcast to which the same is done."""

    def __init__(self) -> None:
        self.broadcast = Broadcast(("de", "ja"))
        self.texts: dict[Key, str] = {}
        self.ended, self.hidden, self.held, self.paused = set[Key](), set[Key](), set[Key](), False

    @property
    def shown(self) -> dict[Key, str]:
        return {key: text for key, text in self.texts.items() if key not in self.hidden | self.held}

    def partial(self, key: Key, text: str) -> None:
        if key not in self.ended:
            self.broadcast.caption(caption(key, text, final=False), 0.0)

    def final(self, key: Key, text: str) -> None:
        if not self._has_ended(key):
            self.texts[key] = text
            self.broadcast.caption(caption(key, text, final=True), 0.0)

    def fail(self, key: Key, text: str) -> None:
        if not self._has_ended(key):
            error = protocol.Error(code="translation", message=text, utterance=key[0], language=key[1], final=True)
            self.broadcast.failed(key, error)

    def _has_ended(self, key: Key) -> bool:
        before = key in self.ended
        self.ended.add(key)
        if self.paused and not before:
            self.held.add(key)
        return before

    def hide(self, key: Key, text: str) -> None:
        self.hidden.add(key)
        self.broadcast.hide(key, True)

    def show(self, key: Key, text: str) -> None:
        self.hidden.discard(key)
        self.broadcast.hide(key, False)

    def pause(self, key: Key, text: str) -> None:
        self.paused = True
        self.broadcast.pause(True)

    def release(self, key: Key, text: str) -> None:
        self.paused = False
        self.held.clear()
        self.broadcast.pause(False)

    def correct(self, key: Key, text: str) -> None:
        if key in self.texts:
            self.texts[key] = text
            self.broadcast.correct(key, text)


def steps(*names: str) -> list[tuple[str, Key]]:
    """Steps about one caption, after its utterance has ended in another language."""
    return [("final", ("1", "ja")), *((name, ("1", "de")) for name in names)]


@given(STEPS)
@example(steps("back", "final"))
@example(steps("back", "look", "final", "hide"))
@example(steps("pause", "final", "back", "release", "correct"))
@example(steps("back", "hide", "final", "show", "hide", "show"))
def test_everybody_agrees(steps: list[tuple[str, Key]]) -> None:
    model, mirror = Model(), mirrored()
    broadcast, always, sometimes, elsewhere = model.broadcast, Page(model.hidden), Page(model.hidden), Page()
    always.connect(broadcast)
    elsewhere.connect(mirror.broadcast)
    broadcast.publish(feed := Outbox(1000))
    for number, (name, key) in enumerate(steps):
        if name == "away":
            sometimes.leave(broadcast)
        elif name == "back":
            sometimes.leave(broadcast)
            sometimes.connect(broadcast)
        elif name == "look":
            sometimes.look()
        else:
            getattr(model, name)(key, f"{name} {number}")
        always.read()
        assert {key_of(each): each.text for each in broadcast.transcript.finals} == always.finals == model.shown
        assert always.partials.keys().isdisjoint(model.hidden)
    while (frame := feed._next()) is not None:
        mirror._apply(protocol.FROM_SERVER.validate_json(frame.text))
    late, late_elsewhere = Page(), Page()
    sometimes.read()
    sometimes.leave(broadcast)
    for page, of in ((sometimes, broadcast), (late, broadcast), (late_elsewhere, mirror.broadcast)):
        page.connect(of)
    for page in (sometimes, late, elsewhere, late_elsewhere):
        page.read()
        assert page.finals == model.shown
    assert {key_of(each): each.text for each in mirror.transcript.finals} == model.shown


def test_viewer_comes_in_the_middle_of_an_utterance() -> None:
    """Its final caption may be made before the captions so far have been sent."""
    model, page = Model(), Page()
    model.partial(KEYS[0], "we")
    page.connect(model.broadcast)
    model.final(KEYS[0], "we saw")
    assert page.outbox is not None
    sent = []
    while (frame := page.outbox._next()) is not None:
        sent.append(json.loads(frame.text))
    assert [(each["type"], each["text"]) for each in sent] == [("final", "we saw")]


def mirrored() -> Any:
    from redraft_fanout.feed import Mirror

    mirror = Mirror("1", mock.Mock())
    mirror.transcript.targets = ("de", "ja")
    return mirror


DECISIONS = st.lists(
    st.one_of(
        st.builds(protocol.Pause, paused=st.booleans(), decision=st.integers(1, 4)),
        st.builds(
            protocol.Hide,
            utterance=st.sampled_from("12"),
            language=st.just("de"),
            hidden=st.booleans(),
            decision=st.integers(1, 4),
        ),
        st.builds(
            protocol.Correct,
            utterance=st.sampled_from("12"),
            language=st.just("de"),
            text=st.sampled_from("abc"),
            decision=st.integers(1, 4),
        ),
        st.builds(
            protocol.NameSpeaker,
            speaker=st.just("Speaker 1"),
            name=st.sampled_from(["Anna", "Ben"]),
            decision=st.integers(1, 4),
        ),
    ),
    max_size=12,
)


@given(DECISIONS, st.randoms())
def test_decisions_in_any_order(decisions: list[Any], drawn: Any) -> None:
    """Whatever a server knew before, in whatever order and however often decisions come: the latest ones count."""
    latest: dict[Any, Any] = {}
    for each in decisions:  # one client makes them, so that numbers on one subject are different
        about = each.type, getattr(each, "utterance", "")
        number = latest[about].decision + 1 if about in latest else 1
        latest[about] = each.model_copy(update={"decision": number})
    made = [each for message in latest.values() for each in [message] * 2]
    older = [each.model_copy(update={"decision": 1}) for each in decisions]
    outdated = [each for each in older if latest[each.type, getattr(each, "utterance", "")].decision > 1]
    drawn.shuffle(mixed := made + outdated)
    live = offline()
    live.control(protocol.Declare(decisions=tuple(mixed)))
    live.restore(
        [protocol.Final(utterance=name, seq=0, language="de", text="first", speaker="Speaker 1") for name in "12"]
    )
    for (kind, utterance), message in latest.items():
        cell = live.transcript.cell((utterance, "de"))
        if kind == "pause":
            assert live.transcript.paused == message.paused
        elif kind == "hide":
            assert cell.hidden == message.hidden
        elif kind == "name":
            speakers = {each.speaker for each in live.transcript.kept}
            assert speakers <= {message.name} and live.transcript.names["Speaker 1"][0] == message.name
        else:
            assert cell.caption is not None and cell.caption.text == message.text


def test_hidden_before_it_is_restored() -> None:
    live, viewer = offline(), Outbox(9)
    live.broadcast.watch(viewer)
    hide = protocol.Hide(utterance="1", language="de", decision=1)
    live.control(protocol.Declare(decisions=(hide, protocol.Hide(utterance="1", language="fr", decision=1))))
    live.restore([protocol.Final(utterance=name, seq=0, language="de", text="da") for name in "12"])
    kinds = [
        (each.type, json.loads(each.text).get("utterance"))
        for each in viewer._waiting.values()
        if isinstance(each, Frame)
    ]
    assert kinds == [("hide", "1"), ("final", "2")]


def test_subtitles_of_a_hidden_caption() -> None:
    """They start with their utterance, and come with the next cue, without waiting for the caption."""
    broadcast = Broadcast(("de", "ja"))
    for key in (("1", "de"), ("1", "ja")):
        broadcast.caption(replace(caption(key, key[1], final=True), time=5.0, start=2.0), 0.0)
    broadcast.hide(("1", "ja"), True)
    subtitles = "1\n00:00:02,000 --> 00:00:05,000\nde\n\n"
    assert broadcast.transcript.text("srt", ("de", "ja")) == subtitles
    for key in (("2", "de"), ("2", "ja")):
        broadcast.caption(replace(caption(key, key[1], final=True), time=10.0, start=9.0), 0.0)

    async def first() -> str:
        return await asyncio.wait_for(anext(broadcast.transcript.live("srt", ("de", "ja"))), 5)

    assert asyncio.run(first()) == subtitles


def test_cost_of_a_language_without_captions() -> None:
    """A viewer who asks for one costs as much in a long talk as in a short one."""
    costs = []
    for size in (1, 1000):
        broadcast, viewer, calls = Broadcast(("de",)), Outbox(languages=frozenset({"fr"})), [0]
        for number in range(size):
            broadcast.caption(caption((str(number), "de"), "wir", final=True), 0.0)

        def counted(_frame: object, event: str, _argument: object, calls: list[int] = calls) -> None:
            calls[0] += event in ("call", "c_call")

        sys.setprofile(counted)
        broadcast.watch(viewer)
        assert viewer._next() is None
        sys.setprofile(None)
        costs.append(calls[0])
    assert costs[1] < 2 * costs[0]
