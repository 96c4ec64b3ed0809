"""Viewers that ask for some languages get their captions, and all messages without a language."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed

from redraft import protocol
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.languages import parse_language
from redraft.decoding.types import Tally
from redraft.engine.lanes import Answer
from redraft.protocol import Frame, new_token
from redraft.serve.sessions.broadcast import Outbox
from redraft.serve.sessions.live import LiveSession
from tests.serve.fakes import offline
from tests.serve.servers import Running, Socket, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually

#: What a viewer asks for -> the languages that it is sent.
ASKED = {"": {"de", "ja"}, "?language=ja": {"ja"}, "?language=ja&language=de": {"de", "ja"}, "?language=fr": set()}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(busy=1000) as found:
        yield found


def of(messages: list[dict[str, Any]], *types: str) -> set[str]:
    """The languages of messages of these types."""
    return {each["language"] for each in messages if each["type"] in types}


def both(socket: Socket, kind: str, languages: Collection[str] = ("de", "ja")) -> list[dict[str, Any]]:
    """Wait for the captions of both languages; return what has come until then."""
    missing, heard = set(languages), list[dict[str, Any]]()
    while missing:
        heard += socket.until(kind)
        missing.discard(heard[-1]["language"])
    return heard


@pytest.mark.parametrize("query", ASKED)
def test_chosen_languages(server: Running, query: str) -> None:
    wanted = ASKED[query]
    with server.socket() as socket:
        name = socket.start("de", "ja", method="ar")["session"]
        say(socket, "we saw")
        both(socket, "final")
        say(socket, "her", utterance="2", final=False)
        both(socket, "partial")
        with server.socket(f"/v1/watch/{name}{query}") as viewer:
            heard = both(viewer, "partial", wanted)  # a final takes the place of one that has not been sent
            say(socket, "her", "her duck", utterance="2", first=0)
            both(socket, "final")
            socket.say("hide", utterance="1")
            socket.say("correct", utterance="2", language="de", text="Ihre Ente.")
            socket.say("correct", utterance="2", language="ja", text="彼女のアヒル。")
            socket.say("pause")
            socket.say("end")
            heard += viewer.until("done")
    assert of(heard, "partial") == of(heard, "final") == of(heard, "hidden") == wanted
    assert {each[1] for each in finals(heard) if each[0] == "1"} == wanted
    texts = {"de": [expected("her duck"), "Ihre Ente."], "ja": [expected("her duck", "ja"), "彼女のアヒル。"]}
    for language in wanted:
        assert [text for name, tag, text in finals(heard) if (name, tag) == ("2", language)] == texts[language]
    assert {"paused", "stats"} <= {each["type"] for each in heard}
    counts = [each for each in heard if each["type"] == "stats"][-1]
    assert counts["targets"].keys() == {"de", "ja"}


#: Languages of a session -> spellings of one of them.
SPELLINGS = {
    ("German", "ja"): ("de", "DE", "German", "german", "de-DE", "de_de"),
    ("pt-BR", "ja"): ("pt", "pt-br", "PT_BR", "Brazilian Portuguese"),
    ("zh_hant", "ja"): ("zh-TW", "zh-Hant", "Traditional Chinese"),
    ("cmn", "ja"): ("zh", "zh-cn", "ZH_Hans"),
}


@pytest.mark.parametrize(
    ("targets", "spelling"), [(targets, each) for targets, found in SPELLINGS.items() for each in found]
)
def test_spelling(server: Running, targets: tuple[str, str], spelling: str) -> None:
    query = f"language={quote(spelling)}"
    with server.socket() as socket:
        started = socket.start(*targets, method="ar", room="hall-3", take_over=True)
        name, tag = started["session"], started["targets"][0]
        assert tag == parse_language(targets[0]).standard
        with (
            server.socket(f"/v1/watch/{name}?{query}") as viewer,
            server.socket(f"/v1/rooms/hall-3/watch?{query}") as guest,
        ):
            say(socket, "it was her duck")
            both(socket, "final", {tag, "ja"})
            for each in (viewer, guest):
                assert {language for _, language, _ in finals(each.until("final"))} == {tag}
            text = server.ask(f"/v1/sessions/{name}/transcript?{query}").text
            assert text.splitlines() == [viewer_text(server, name, tag)]
            for request in ("ack", "hide"):
                socket.say(request, utterance="1", language=spelling)
            assert socket.until("hidden")[-1]["language"] == tag
            socket.say("hide", utterance="1", language=spelling, hidden=False)
            socket.say("correct", utterance="1", language=spelling, text="x")
            assert finals(socket.until("final")) == [("1", tag, "x")]
            socket.say("ack", utterance="1", language=spelling, corrected=1)
            socket.say("ack", utterance="1", language="ja")
            socket.say("pause")
            socket.until("paused")
    with server.socket() as again:  # nothing is left to acknowledge
        again.start(*targets, token=started["token"])
        assert again.hear()["type"] in ("hidden", "paused")
    with server.socket() as other:
        token = new_token()
        session = other.start(*targets, token=token)["session"]
        final = {"type": "final", "utterance": "1", "seq": 0, "language": spelling, "text": "x"}
        other.say("declare", decisions=[{"type": "hide", "utterance": "2", "language": spelling, "decision": 1}])
        other.say("restore", finals=[final, {**final, "utterance": "2"}])
        eventually(lambda: server.ask(f"/v1/sessions/{session}/transcript?{query}").text == "x\n")


def viewer_text(server: Running, name: str, tag: str) -> str:
    """The only caption of a session in a language."""
    (caption,) = [each for each in server.hub.sessions[name].transcript.finals if each.language == tag]
    return caption.text


def test_control_by_language(server: Running) -> None:
    with server.socket() as socket:
        name = socket.start("de", "ja", method="ar")["session"]
        with server.socket(f"/v1/watch/{name}?language=ja") as viewer:
            socket.say("pause")
            say(socket, "we saw")
            both(socket, "final")
            say(socket, "her", utterance="2", final=False)
            both(socket, "partial")
            socket.say("pause", paused=False)
            heard = viewer.until("partial")
            assert finals(heard) == [("1", "ja", expected("we saw", "ja"))] and of(heard, "partial") == {"ja"}
            socket.say("hide", utterance="1")
            socket.say("hide", utterance="1", hidden=False)
            socket.say("end")
            heard = viewer.until("done")
    assert of(heard, "hidden") == {"ja"}
    assert ("1", "ja", expected("we saw", "ja")) in finals(heard) and of(heard, "final") == {"ja"}


@pytest.mark.parametrize("path", ["/v1/watch/unknown", "/v1/rooms/hall-1/watch"])
@pytest.mark.parametrize("wrong", ["nonsense", "", "d" * 500, "de%0A-"])
def test_invalid_language(server: Running, path: str, wrong: str) -> None:
    with server.socket(f"{path}?language=de&language={wrong}") as viewer:
        error = viewer.hear()
        assert (error["type"], error["code"], error["fatal"]) == ("error", "option", True)
        with pytest.raises(ConnectionClosed):
            viewer.hear()


def test_room_languages(server: Running) -> None:
    watch = "/v1/rooms/hall-2/watch?language="
    with server.socket(f"{watch}ja") as viewer, server.socket(f"{watch}fr") as other:
        for targets in (("de", "ja"), ("fr", "ja")):
            with server.socket() as socket:
                socket.start(*targets, room="hall-2", method="ar")
                say(socket, "we saw")
                socket.until("final"), socket.until("final")
                socket.say("end")
                socket.until("done")
        for each, languages in ((viewer, ["ja", "ja"]), (other, ["fr"])):
            heard = [message for _ in range(5) for message in each.until("room")]
            states = [message["state"] for message in heard if message["type"] == "room"]
            assert states == ["waiting", "live", "over", "live", "over"]
            assert [language for _, language, _ in finals(heard)] == languages


# A session by itself


def session() -> tuple[LiveSession, dict[str, Outbox]]:
    """A session in two languages, and the outboxes of its owner, a feed, and viewers of one language and of all."""
    live = offline("de", "ja")
    found = {name: Outbox(99) for name in ("owner", "feed", "all")} | {"ja": Outbox(99, languages=frozenset({"ja"}))}
    live.attach(found["owner"])
    live.broadcast.publish(found["feed"])
    live.broadcast.watch(found["all"])
    live.broadcast.watch(found["ja"])
    for outbox in found.values():
        outbox._waiting.clear()
    return live, found


def waiting(outbox: Outbox) -> list[tuple[str, str | None]]:
    """Type and language of the messages that are queued, without counts."""
    queued = ([each] if isinstance(each, Frame) else list(each) for each in outbox._waiting.values())
    messages = [json.loads(message.text) for messages in queued for message in messages]
    return [(each["type"], each.get("language")) for each in messages if each["type"] != "stats"]


@pytest.mark.parametrize("final", [False, True])
def test_errors_by_language(final: bool) -> None:
    live, outboxes = session()
    update = Update("1", 0, "we saw", final=final)
    live.accept(update)
    for language in ("de", "ja"):
        failure = Failure("it failed", None, "1", 0, language)
        live.answered(Answer(language, update, [failure], 0.1, Tally()))
    everything = [("error", "de"), ("error", "ja")]
    seen = everything if final else []  # viewers need not know of a partial caption
    spoken = [("final" if final else "partial", "en")]
    assert {name: waiting(outbox) for name, outbox in outboxes.items()} == {
        "owner": everything,
        "feed": spoken + seen,
        "all": seen,
        "ja": seen[1:],
    }


def test_restored_by_language() -> None:
    live, outboxes = session()
    live.restore(protocol.Final(utterance="1", seq=0, language=tag, text="da") for tag in ("de", "ja"))
    everything = [("final", "de"), ("final", "ja")]
    assert [waiting(outboxes[name]) for name in ("feed", "all", "ja")] == [everything, everything, [("final", "ja")]]


def test_fatal_error() -> None:
    live, outboxes = session()
    live.fail("engine", "it has stopped")
    assert [waiting(outboxes[name]) for name in ("owner", "all", "ja")] == [[("error", None)]] * 3


def test_serialised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    live, _ = session()
    for number in range(20):
        live.broadcast.watch(Outbox(99, languages=frozenset({"ja"} if number % 2 else ())))
    made: list[str] = []

    def made_of(caption: Caption, **more: object) -> Frame:
        made.append(caption.text)
        return frame_of(caption, **more)

    frame_of = protocol.frame_of
    monkeypatch.setattr(protocol, "frame_of", made_of)
    for tag in ("de", "ja"):
        live.broadcast.final(Caption("1", 0, tag, f"{tag} 1", "", True, 0.0, "we saw"), 1.0)
        live.broadcast.correct(("1", tag), f"{tag} 2")
    live.restore([protocol.Final(utterance="2", seq=0, language="ja", text="ja 3")])
    assert made == ["de 1", "de 2", "ja 1", "ja 2", "ja 3"]
