"""A live session by itself: the updates that it accepts and keeps, none of which is lost without an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from redraft import protocol
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.translation import UNANSWERED
from redraft.decoding.types import Tally
from redraft.engine.engine import Engine
from redraft.engine.lanes import Answer, Lane
from redraft.engine.stream import MOST_PENDING
from redraft.protocol import Frame
from redraft.protocol.codes import Refused
from redraft.serve.http.sockets import Incoming, _parse
from redraft.serve.sessions.broadcast import Outbox
from redraft.serve.sessions.folder import Folder
from redraft.serve.sessions.live import FULL, LiveSession
from redraft.serve.sessions.transcript import Transcript
from tests.serve.fakes import offline
from tests.waiting import eventually


def answer(live: LiveSession, update: Update, text: str = "wir sahen") -> None:
    caption = Caption(update.utterance, update.seq, "de", text, "", update.final, update.time, update.text)
    live.answered(Answer("de", update, [caption], 0.1, Tally()))


def process(message: Any, live: LiveSession) -> protocol.Error | None:
    """What a message is answered with, if it is refused."""
    hub: Any = mock.Mock()
    Incoming(live, outbox := Outbox(9), hub)._execute(_parse(message.wire(), 99_999))
    return next((protocol.Error.model_validate(each) for each in waiting(outbox)), None)


def waiting(outbox: Outbox) -> list[dict]:
    return [json.loads(each.text) for each in outbox._waiting.values() if isinstance(each, Frame)]


def test_same_seq_final() -> None:
    live = offline()
    for _ in "12":
        live.accept(Update("1", 3, "we saw"))
    with pytest.raises(Refused, match="must be greater than its last one"):
        live.accept(Update("1", 3, "we saw", final=True))
    live.accept(Update("1", 4, "we saw", final=True))


def test_captions_while_the_owner_is_told() -> None:
    """What ends or is named after a connection has begun, and before it has got what it may not know, comes once."""
    live, outbox = offline(), Outbox(99)

    def final(utterance: str) -> None:
        update = Update(utterance, 0, "we saw", final=True)
        live.accept(update)
        answer(live, update)

    final("1")
    live.broadcast.name("A", "Anna")
    live.broadcast.name("B", "Ben")
    live.attach(outbox)
    final("2")
    found = list[dict[str, Any]]()
    while (message := outbox._next()) is not None:
        found.append(json.loads(message.text))
        if len(found) == 3:
            final("3")
            live.broadcast.name("C", "Chris")
    finals = [each["utterance"] for each in found if each["type"] == "final" and each["language"] == "de"]
    names = [each["name"] for each in found if each["type"] == "named"]
    assert (finals, names) == (["1", "2", "3"], ["Anna", "Ben", "Chris"])


def test_start_without_first_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subtitles begin with the words, though the first updates never came; other updates of it change nothing."""
    live, engine = offline(), mock.Mock(Engine)
    live.engine, live.lanes = engine, {"de": mock.Mock(Lane)}
    monkeypatch.setattr(live.stream, "follow", mock.Mock())
    live.accept(Update("1", 7, "we saw", time=5.0, start=2.0))
    live.accept(Update("1", 8, "we saw her", time=6.0, start=3.0))
    live.accept(Update("2", 0, "and", time=9.0))
    assert [call.args[1].start for call in engine.submit.call_args_list] == [2.0, 2.0, 9.0]


def test_end_at_the_highest_seq() -> None:
    live = offline()
    assert process(protocol.UpdateMessage("1", 2**53, "we saw"), live) is None
    assert process(protocol.End(), live) is None
    assert live.ended and ("1", "de", False) in live.stream._unanswered


def test_refused_post_not_counted() -> None:
    live = offline()
    for _ in "12":
        live.posted(5, "we saw", final=True)
    live.end()
    with pytest.raises(Refused, match="the session has ended"):
        live.posted(6, "lost", final=True)
    assert live.posts.newest == 5


def test_restored_language() -> None:
    live, outbox = offline(), Outbox(99)
    live.attach(outbox)
    final = protocol.Final(utterance="1", seq=4, language="de", text="schon\n\n00:00 --> da", source="there\x00already")
    live.restore([final])
    for update in (Update("1", 0, "we"), Update("1", 1, "we saw", final=True)):
        answer(live, update)
    assert [message["type"] for message in waiting(outbox)] == ["stats"]
    # What a client tells is one line, as what a model says is.
    assert live.transcript.text("txt", ["de"]) == "schon  00:00 --> da\n"
    assert [caption.source for caption in live.transcript.finals if caption.language == "de"] == ["there already"]
    assert live.transcript.text("txt", ["en"]) == "there already\n"


def test_partly_restored() -> None:
    engine = mock.Mock(Engine)
    live = offline("de", "ja")
    live.engine, live.lanes = engine, {"de": mock.Mock(Lane, translation=None), "ja": mock.Mock(Lane)}
    live.restore([protocol.Final(utterance="1", seq=4, language="de", text="schon da")])
    update = Update("1", 5, "there already", final=True)
    live.accept(update)
    engine.submit.assert_called_once_with([live.lanes["ja"]], update, None, rest=False)
    assert list(live.stream._unanswered) == [("1", "ja", False)]


def test_shared_file(tmp_path: Path) -> None:
    def rows() -> list[tuple[str, str]]:
        (file,) = tmp_path.iterdir()
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return [(line["utterance"], line["text"]) for line in lines if line["language"] == "de"]

    def ends(live: LiveSession, utterance: str, text: str) -> None:
        update = Update(utterance, 0, "we saw", final=True)
        live.accept(update)
        answer(live, update, text)

    folder = Folder(tmp_path)
    first, second = offline(folder=folder), offline(folder=folder)
    for utterance in ("1", "2", "3", "4"):
        ends(first, utterance, "zuerst")
    eventually(lambda: not folder.late)
    # The client has 2 and 3, of which it has hidden one; 1 it had before a reload that lost it, 4 it never got.
    finals = [protocol.Final(utterance=name, seq=0, language="de", text="wieder da") for name in ("2", "3")]
    second.control(protocol.Hide(utterance="3", language="de", decision=1))
    second.restore(finals)
    ends(second, "4", "noch einmal")
    ends(second, "5", "neu")
    folder.close()
    assert rows() == [("1", "zuerst"), ("2", "wieder da"), ("4", "noch einmal"), ("5", "neu")]


@pytest.mark.parametrize("cut", [False, True])
def test_cut_captions(cut: bool) -> None:
    for final in (False, True):
        caption = Caption("1", 2, "de", "wir sahen", "", final, 0.5, "we saw", cut)
        wire = protocol.frame_of(caption, lag_ms=0.1).text
        assert protocol.caption_of(protocol.FROM_SERVER.validate_json(wire)) == caption
        assert ("cut" in json.loads(wire)) is cut


def test_empty_final() -> None:
    live, outbox = offline(), Outbox(99)
    live.attach(outbox)
    update = Update("1", 0, "we saw", final=True)
    live.accept(update)
    live.answered(Answer("de", update, [Failure(UNANSWERED, None, "1", 0, "de")], 0.1, Tally()))
    error = waiting(outbox)[0]
    assert (error["type"], error["code"], error["message"], error["final"]) == (
        "error",
        "translation",
        UNANSWERED,
        True,
    )
    assert ("1", "de") in live.transcript and [each.language for each in live.transcript.finals] == ["en"]


def test_full_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.serve.sessions.live.MOST_CHARACTERS", 1000)
    live, outbox = offline(), Outbox(99)
    live.attach(outbox)
    taken = 0
    for number in range(20):
        update = protocol.UpdateMessage(utterance=str(number), seq=0, text="we saw " * 5, final=True)
        problem = process(update, live)
        if problem is None:
            taken += 1
            answer(live, update)
        else:
            assert (problem.code, problem.message, problem.utterance, problem.seq) == ("limit", FULL, str(number), 0)
    assert 2 <= taken <= 5 and live.transcript.size < 1300
    assert [caption.language for caption in live.transcript.finals] == ["en", "de"] * taken
    final = protocol.Final(utterance="x", seq=4, language="de", text="more")
    refused = process(protocol.Restore(finals=(final,)), live)
    assert refused is not None and refused.code == "limit"
    assert process(protocol.Ack(utterance="0", language="de"), live) is None
    assert process(protocol.End(), live) is None
    # What never comes to an end takes room, too.
    live = offline()
    for number in range(20):
        process(protocol.UpdateMessage(utterance=f"{number:0100}", seq=0, text="we"), live)
    assert sum(f"{number:0100}" in live.stream for number in range(20)) == 5


@pytest.mark.parametrize("by_post", [False, True])
def test_long_talk(monkeypatch: pytest.MonkeyPatch, by_post: bool) -> None:
    """Old captions leave before words are refused, which the owner is told before; those held back stay."""
    monkeypatch.setattr("redraft.serve.sessions.live.MOST_CHARACTERS", 2000)
    live, outbox, viewer = offline("de"), Outbox(999), Outbox(999)
    live.by_post = by_post
    live.attach(outbox)
    live.broadcast.watch(viewer)
    told, text = None, " ".join(["we saw"] * 5)
    for number in range(200):
        update = protocol.UpdateMessage(utterance=str(number), seq=0, text=text, final=True)
        assert process(update, live) is None
        answer(live, update)
        if not by_post:
            process(protocol.Ack(utterance=str(number), language="de"), live)
        if told is None and any(each["type"] == "error" for each in waiting(outbox)):
            told = len(live.transcript.utterances)
        assert live.transcript.size < 2500
    kept = list(live.transcript.utterances)
    assert told is not None and told >= len(kept) - 2 and 3 <= len(kept) <= 15
    assert kept == [str(number) for number in range(200 - len(kept), 200)]
    errors = [each for each in waiting(outbox) if each["type"] == "error"]
    assert [(each["code"], each["fatal"]) for each in errors] == [("limit", False)]
    assert [each.utterance for each in live.transcript.finals if each.language == "de"] == kept
    late, frames = Outbox(9), []
    live.broadcast.watch(late)
    while (message := late._next()) is not None:
        frames.append(json.loads(message.text))
    assert [each["utterance"] for each in frames if each["language"] == "de"] == kept
    # A repeated update is not translated again, and the accounts agree with what is there.
    live.accept(Update("0", 0, "we saw", final=True))
    assert not live.stream.waits
    size = sum(300 + len(name) + 2 * len(text) + len("wir sahen") for name in kept)
    assert live.transcript.size == size


def test_held_captions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.serve.sessions.live.MOST_CHARACTERS", 2000)
    live = offline()
    live.attach(Outbox(999))
    live.control(protocol.Pause())
    refused = False
    for number in range(50):
        update = protocol.UpdateMessage(utterance=str(number), seq=0, text="we saw", final=True)
        refused = process(update, live) is not None or refused
        if not refused:
            answer(live, update)
            process(protocol.Ack(utterance=str(number), language="de"), live)
    assert refused and live.transcript.utterances["0"].cells["de"].held
    live.control(protocol.Pause(paused=False))
    assert process(protocol.UpdateMessage(utterance="x", seq=0, text="we saw", final=True), live) is None


def test_cost_of_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many decisions on one subject in a message, one is executed; a release looks at what is held back only."""
    live = offline()
    for number in range(100):
        live.restore([protocol.Final(utterance=str(number), seq=0, language="de", text="da")])
    monkeypatch.setattr(Transcript, "cells", property(lambda _: pytest.fail("all cells were looked at")))
    with mock.patch.object(Transcript, "release", autospec=True, side_effect=Transcript.release) as release:
        toggles = [protocol.Pause(paused=number % 2 == 0, decision=number) for number in range(1, 1001)]
        live.control(protocol.Declare(decisions=tuple(toggles)))
        assert live.transcript.paused and live.transcript.decided == 1000 and not release.called
        live.restore([protocol.Final(utterance="new", seq=0, language="de", text="da")])
        live.control(protocol.Declare(decisions=(protocol.Pause(paused=False, decision=1001),)))
        assert release.call_count == 1
    assert not live.transcript.held


def test_owner_hears_of_own_correction() -> None:
    """It was declared to a restarted server before the caption was restored, by a page that reconnected meanwhile."""
    live, outbox = offline(), Outbox(99)
    live.attach(outbox)
    correct = protocol.Correct(utterance="1", language="de", text="besser", decision=2)
    live.control(protocol.Declare(decisions=(correct,)))
    finals = [protocol.Final(utterance=name, seq=0, language="de", text="da") for name in "12"]
    live.restore(finals)
    (found,) = [each for each in waiting(outbox) if each["type"] == "final"]
    assert (found["utterance"], found["text"], found["corrected"]) == ("1", "besser", 2)


def test_long_resume() -> None:
    """What an owner has missed is not made at once, however much it is, and none of it is lost."""
    live = offline()
    for number in range(1000):
        update = Update(str(number), 0, "we saw", final=True)
        live.accept(update)
        answer(live, update)
        live.control(protocol.Correct(utterance=str(number), language="de", text="besser", decision=1))
    outbox = Outbox(9)
    live.attach(outbox)
    assert len(outbox._waiting) < 5
    process(protocol.Ack(utterance="7", language="de", corrected=1), live)
    found = []
    while (message := outbox._next()) is not None:
        found.append(json.loads(message.text))
    assert [each["utterance"] for each in found if each["type"] == "final"] == [
        str(number) for number in range(1000) if number != 7
    ]


@pytest.mark.parametrize("end", [lambda live: live.fail("engine", "it has stopped"), lambda live: live.forget()])
def test_waiting_ends_with_session(end: Callable[[LiveSession], None]) -> None:
    async def wait() -> None:
        live = offline()
        for number in range(MOST_PENDING + 1):
            live.accept(Update(str(number), 0, "we saw", final=True))
        waits = asyncio.create_task(live.stream.room())
        await asyncio.sleep(0)
        assert not waits.done()
        end(live)
        await asyncio.wait_for(waits, 5)

    asyncio.run(wait())


def test_forgotten() -> None:
    live, viewer = offline(), Outbox(9)
    live.broadcast.watch(viewer)
    live.forget()
    assert viewer.closing is not None and viewer.closing[0] == 1000
    assert live.transcript.closed
    with pytest.raises(Refused, match="has ended"):
        live.accept(Update("1", 0, "we"))


def test_accounts_of_restored_captions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was restored, corrected elsewhere, hidden ahead and dropped counts as what came."""
    monkeypatch.setattr("redraft.serve.sessions.live.MOST_CHARACTERS", 3000)
    live = offline("de")
    for number in range(50):
        about: dict[str, Any] = {"utterance": str(number), "language": "de", "text": "wir sahen" * (number % 7)}
        live.restore([protocol.Final(seq=4, source="we saw", corrected=number % 3 or None, **about)])
        live.control(protocol.Hide(utterance=str(number + 1), language="de", hidden=True, decision=1))
        live.control(protocol.Correct(utterance=str(number), language="de", text="wir sahen sie", decision=9))
        live.acknowledged(protocol.Ack(utterance=str(number), language="de", corrected=9))
        cells = [(each, [*each.cells.values()]) for each in live.transcript.utterances.values()]
        texts = sum(len(name.name) + sum(len(each.correction) for each in of) for name, of in cells)
        finals = [each.final for _, of in cells for each in of if each.final]
        texts += sum(100 + len(each.text) + len(each.source) for each in finals)
        assert live.transcript.size == texts + 100 * len(cells) < 3500
    assert len(live.transcript.utterances) < 20
