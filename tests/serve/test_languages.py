"""Sessions in which several languages are spoken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redraft import Caption, Style, Update
from redraft.captions import spoken
from redraft.client import Client
from redraft.protocol.codes import Refused
from redraft.serve.sessions.session_audio import Recognisers
from tests.captions.detector import Detector
from tests.serve.javascript import in_node
from tests.serve.servers import running
from tests.serve.talking import expected, finals, say

ENGLISH, GERMAN = "we see the house.", "wir sehen das Haus."
#: The languages that are spoken, the targets, and the language of the captions that show what is spoken.
ORIGINALS: list[tuple[str, list[str], list[str], str]] = [
    ("de", [], ["ja"], "de"),
    ("auto", [], ["ja"], "auto"),
    ("en", ["de"], ["en", "de"], "en"),
    ("en", ["de"], ["ja"], "auto"),
    ("en", ["de"], ["en", "ja"], "auto"),
]


@pytest.fixture(autouse=True)
def detector(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Detector()
    monkeypatch.setattr(spoken, "_detector", lambda: made)


def test_viewers_of_either_language_follow_both_speakers() -> None:
    with running(methods=("ar",)) as server, server.socket() as speaker:
        started = speaker.start("en", "de", source_language="en", also_spoken=["German"])
        with server.socket(f"/v1/watch/{started['session']}") as viewer:
            say(speaker, "we see", ENGLISH, utterance="1")
            say(speaker, "wir sehen", GERMAN, utterance="2")
            speaker.say("end")
            heard, seen = speaker.until("done"), viewer.until("done")
    texts = {("1", "en"): ENGLISH, ("2", "de"): GERMAN}
    texts |= {("1", "de"): expected(ENGLISH), ("2", "en"): expected(GERMAN, "en")}
    for messages in (heard, seen):
        assert {each[:2]: each[2] for each in finals(messages)} == texts
        spoken_in = {each["utterance"]: each["source_language"] for each in messages if each["type"] == "final"}
        assert spoken_in == {"1": "en", "2": "de"}
    own = [each for each in heard if each.get("source_language") == each.get("language") is not None]
    assert len(own) >= 2 and all(each["text"] == each["source"] for each in own)


def test_language_of_an_update() -> None:
    with running() as server, server.socket() as speaker:
        speaker.start("en", source_language="en", also_spoken=["de"])
        speaker.say("update", utterance="1", seq=0, text="ja", language="fr")
        refused = speaker.hear()
        assert (refused["code"], refused["field"], refused["request"]) == ("option", "language", "update")
        speaker.say("update", utterance="1", seq=0, text="so", final=True, language="en")
        (final,) = [each for each in speaker.until("final") if each["type"] == "final"]
        assert (final["text"], final["source_language"]) == ("so", "en")


@pytest.mark.parametrize(("first", "also", "targets", "original"), ORIGINALS)
def test_captions_of_what_is_spoken(first: str, also: list[str], targets: list[str], original: str) -> None:
    with running() as server, server.socket() as speaker:
        name = speaker.start(*targets, source_language=first, also_spoken=also)["session"]
        assert server.ask(f"/v1/sessions/{name}").json["source_language"] == original
        with server.socket(f"/v1/watch/{name}?language={original}") as viewer:
            say(speaker, ENGLISH if original == "en" else GERMAN)
            assert finals(viewer.until("final"))[-1][1:] == (original, ENGLISH if original == "en" else GERMAN)


def test_captions_of_what_is_spoken_in_pages(tmp_path: Path) -> None:
    cases = [{"source_language": each[0], "also_spoken": each[1], "targets": each[2]} for each in ORIGINALS]
    found = in_node(tmp_path, "captions/languages", "return module.originalOf(given);", cases)
    assert found == [each[3] for each in ORIGINALS]


@pytest.mark.parametrize("also", ["ja", "nonsense"])
def test_what_cannot_be_spoken(also: str) -> None:
    with running() as server, server.socket() as speaker:
        refused = speaker.start("de", also_spoken=[also])
        assert (refused["code"], refused["field"], refused["fatal"]) == ("option", "source_language", True)


def test_texts_have_one_language() -> None:
    with running() as server:
        for more in ({"source_language": "auto"}, {"also_spoken": ["de"]}):
            answer = server.ask("/v1/translate", {"text": "so", "targets": ["ja"], **more})
            error = answer.json["error"]
            assert (answer.status, error["field"]) == (400, "source_language")


def test_recogniser_is_opened_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def opened(self: Recognisers, language: str) -> None:
        asked.append(language)
        raise Refused("capacity", "enough is known")

    monkeypatch.setattr(Recognisers, "open", opened)
    with running(recogniser="moonshine") as server:
        for fields in ({"also_spoken": ["de"]}, {"source_language": "auto"}, {}):
            with server.socket() as speaker:
                speaker.start("ja", **fields)
                speaker.say("audio", stream="mic")
                assert speaker.until("error")[-1]["code"] == "capacity"
    assert asked == ["en,de", "auto", "en"]


def test_client() -> None:
    async def talk(url: str) -> list[Caption]:
        async with Client(url, ["en", "de"], style=Style("en", also_spoken=["de"])) as client:
            for number, text in enumerate((ENGLISH, GERMAN)):
                await client.send(Update(str(number), 0, text, True))
            await client.end()
            return [event async for event in client if isinstance(event, Caption)]

    with running(methods=("ar",)) as server:
        found = asyncio.run(talk(server.url))
    own = {(each.language, each.source_language, each.text) for each in found if each.text == each.source}
    assert own == {("en", "en", ENGLISH), ("de", "de", GERMAN)}
    assert len(found) == 4
