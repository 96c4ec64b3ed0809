"""The owner's control over viewers' captions: pause, hide, correct."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.serve.servers import Running, Socket, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def transcript(server: Running, name: str, **options: str) -> list[str]:
    query = "&".join(f"{key}={value}" for key, value in options.items())
    return server.ask(f"/v1/sessions/{name}/transcript?{query}").text.splitlines()


def speak(socket: Socket, utterance: str, text: str) -> str:
    """An utterance with its final caption."""
    say(socket, text, utterance=utterance)
    found = next(each for each in iter(socket.hear, None) if each["type"] == "final" and each["utterance"] == utterance)
    socket.say("ack", utterance=utterance, language="de")
    return str(found["text"])


@contextmanager
def watched(server: Running) -> Iterator[tuple[Socket, Socket, str]]:
    """A session in German, with a viewer; its owner, the viewer, and its name."""
    with server.socket() as socket:
        name = socket.start(method="ar")["session"]
        with server.socket(f"/v1/watch/{name}") as viewer:
            yield socket, viewer, name


def nothing_more(viewer: Socket, socket: Socket) -> list[dict[str, Any]]:
    """What a viewer was sent, up to the end of the session."""
    socket.say("end")
    return viewer.until("done")


def test_pause(server: Running) -> None:
    with server.socket() as socket:
        name = socket.start(method="ar")["session"]
        with server.socket(f"/v1/watch/{name}") as viewer:
            speak(socket, "1", "we saw")
            viewer.until("final")
            socket.say("pause")
            assert socket.until("paused")[-1] == {"type": "paused", "paused": True, "decision": 1}
            assert viewer.until("paused")[-1]["paused"] is True
            held = speak(socket, "2", "her duck")  # its owner sees it all the same
            say(socket, "it was", utterance="3", final=False)
            socket.until("partial")
            assert transcript(server, name) == [expected("we saw")]
            with server.socket(f"/v1/watch/{name}") as late:
                assert finals([late.hear()]) == [("1", "de", expected("we saw"))]
                assert late.hear() == {"type": "paused", "paused": True, "decision": 1}
            socket.say("pause", paused=False)
            heard = viewer.until("partial")
            assert [each["type"] for each in heard if each["type"] != "stats"] == ["paused", "final", "partial"]
            assert finals(heard) == [("2", "de", held)]
            assert transcript(server, name) == [expected("we saw"), held]


def test_late_viewers_learn_ages(server: Running) -> None:
    with watched(server) as (socket, viewer, name):
        speak(socket, "1", "we saw")
        (fresh,) = [each for each in viewer.until("final") if each["type"] == "final"]
        say(socket, "it was", utterance="2", final=False)
        socket.until("partial")
        time.sleep(0.2)
        with server.socket(f"/v1/watch/{name}") as late:
            found = late.until("partial")
    assert "age_ms" not in fresh
    old, partial = (each for each in found if each["type"] in ("final", "partial"))
    assert old["age_ms"] > partial["age_ms"] >= 150
    assert old["made"] == fresh["made"] and abs(time.time() - fresh["made"]) < 60


def test_age_survives_a_restart() -> None:
    made = time.time() - 1000
    with running() as server, server.socket() as socket:
        name = socket.start()["session"]
        kept = {"type": "final", "language": "de", "text": "Wir.", "source": "We.", "seq": 0}
        socket.say("restore", finals=[{**kept, "utterance": "1", "made": made}, {**kept, "utterance": "2"}])
        say(socket, "we saw", utterance="3")
        socket.until("final")
        with server.socket(f"/v1/watch/{name}") as late:
            ages = [late.hear()["age_ms"] / 1000 for _ in range(3)]
    assert 999 < ages[0] < 1100 and ages[1] > 1e9 and ages[2] < 100


def test_paused_at_end(server: Running) -> None:
    with watched(server) as (socket, viewer, name):
        socket.say("pause")
        speak(socket, "1", "we saw")
        assert finals(nothing_more(viewer, socket)) == []
        assert transcript(server, name) == []


def test_hide_and_show(server: Running) -> None:
    with server.socket() as socket:
        name = socket.start("de", "ja", method="ar")["session"]
        with server.socket(f"/v1/watch/{name}") as viewer:
            say(socket, "we saw")
            socket.until("final"), socket.until("final")
            socket.say("hide", utterance="1", language="de")
            hidden = {"type": "hidden", "utterance": "1", "language": "de", "hidden": True, "decision": 1}
            assert socket.until("hidden")[-1] == viewer.until("hidden")[-1] == hidden
            assert transcript(server, name) == ["Japanese", "", expected("we saw", "ja")]
            with server.socket(f"/v1/watch/{name}") as late:  # which may have seen it on an earlier connection
                assert [late.hear()["type"] for _ in "12"] == ["hidden", "final"]
            socket.say("hide", utterance="1", language="de", hidden=False)
            assert socket.until("hidden")[-1]["hidden"] is False
            assert finals(viewer.until("final")) == [("1", "de", expected("we saw"))]
            socket.say("hide", utterance="1")  # in all languages
            assert {viewer.until("hidden")[-1]["language"] for _ in range(2)} == {"de", "ja"}
            assert transcript(server, name) == []


def test_named_speaker(server: Running) -> None:
    """From now on, for everyone; in the whole transcript; and the last decision counts."""

    def spoken(utterance: str, heard: Socket) -> str:
        socket.say("update", utterance=utterance, seq=0, text="we saw", final=True, speaker="Speaker 1")
        return str(next(each for each in iter(heard.hear, None) if each["type"] == "final")["speaker"])

    with watched(server) as (socket, viewer, name):
        assert spoken("1", viewer) == "Speaker 1"
        socket.say("name", speaker="Speaker 1", name="Anna")
        assert socket.until("named")[-1] == {"type": "named", "speaker": "Speaker 1", "name": "Anna", "decision": 1}
        assert spoken("2", viewer) == "Anna"
        assert transcript(server, name) == [f"Anna: {expected('we saw')}"] * 2
        with server.socket(f"/v1/watch/{name}") as late:
            assert {late.until("final")[-1]["speaker"] for _ in "12"} == {"Anna"}
        socket.say("name", speaker="Speaker 1", name="Anne", decision=3)
        socket.say("name", speaker="Speaker 1", name="Bert", decision=2)
        assert spoken("3", viewer) == "Anne"
        socket.say("name", speaker="Speaker 1", name=" ")
        assert "name" in socket.until("error")[-1]["message"]


def test_hide_before_final(server: Running) -> None:
    with watched(server) as (socket, viewer, name):
        say(socket, "we saw", final=False)
        socket.until("partial")
        socket.say("hide", utterance="1")
        viewer.until("hidden")
        say(socket, "we saw her", first=1)
        socket.until("final")
        assert finals(nothing_more(viewer, socket)) == []
        assert transcript(server, name) == []


def test_correct(server: Running) -> None:
    with server.socket() as socket:
        started = socket.start(method="ar")
        name = started["session"]
        with server.socket(f"/v1/watch/{name}") as viewer:
            speak(socket, "1", "we saw")
            speak(socket, "2", "her duck")
            socket.say("correct", utterance="1", language="de", text=" wir\nsahen ")
            corrected = socket.until("final")[-1]
            assert (corrected["text"], corrected["corrected"], corrected["source"]) == ("wir sahen", 1, "we saw")
            assert finals(viewer.until("final") + viewer.until("final") + viewer.until("final"))[-1] == (
                "1",
                "de",
                "wir sahen",
            )
            assert transcript(server, name) == ["wir sahen", expected("her duck")]
            assert "wir sahen" in "\n".join(transcript(server, name, format="srt"))
        with server.socket() as again:  # a correction that was not acknowledged comes again
            again.start(token=started["token"])
            assert finals([again.hear()]) == [("1", "de", "wir sahen")]


def test_late_acknowledgement(server: Running) -> None:
    with server.socket() as socket:
        token = socket.start(method="ar")["token"]
        speak(socket, "1", "we saw")
        for text in ("wir", "wir sahen"):
            socket.say("correct", utterance="1", language="de", text=text)
        while socket.until("final")[-1]["corrected"] < 2:  # the second may take the first one's place in the queue
            pass
        socket.say("ack", utterance="1", language="de")  # of the first final caption
        socket.say("ack", utterance="1", language="de", corrected=1)
    with server.socket() as again:
        again.start(token=token)
        assert finals([again.hear()]) == [("1", "de", "wir sahen")]
        again.say("ack", utterance="1", language="de", corrected=2)
        again.say("pause")
        again.until("paused")
    with server.socket() as again:
        again.start(token=token)
        assert again.hear()["type"] == "paused"


def test_decisions_while_away(server: Running) -> None:
    with server.socket() as socket:
        token = socket.start(method="ar")["token"]
        speak(socket, "1", "we saw")
        socket.say("ack", utterance="1", language="de")
        socket.say("hide", utterance="1")
        socket.say("pause")
        socket.until("paused")
    for message in ({"type": "hide", "utterance": "1", "hidden": False}, {"type": "pause", "paused": False}):
        assert server.ask(f"/v1/control/{token}", message).status == 204
    with server.socket() as again:
        again.start(token=token)
        assert [each.get("hidden", each.get("paused")) for each in (again.hear(), again.hear())] == [False, False]


def test_edits_while_paused(server: Running) -> None:
    with watched(server) as (socket, viewer, name):
        for utterance, text in (("1", "we saw"), ("2", "her duck")):
            speak(socket, utterance, text)
            viewer.until("final")
        socket.say("pause")
        speak(socket, "3", "it was")
        socket.say("correct", utterance="1", language="de", text="wir")
        socket.say("correct", utterance="3", language="de", text="es war")
        socket.say("hide", utterance="2")
        assert finals(viewer.until("hidden")) == [("1", "de", "wir")]
        socket.say("hide", utterance="2", hidden=False)
        assert finals(viewer.until("final")) == [("2", "de", expected("her duck"))]
        assert transcript(server, name) == ["wir", expected("her duck")]
        socket.say("pause", paused=False)
        assert finals(viewer.until("final")) == [("3", "de", "es war")]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"type": "hide", "utterance": "9"}, "caption"),
        ({"type": "hide", "utterance": "1", "language": "fr"}, "caption"),
        ({"type": "correct", "utterance": "1", "language": "de", "text": "wir"}, "caption"),  # it is not final
        ({"type": "correct", "utterance": "1", "language": "de", "text": " "}, "protocol"),
    ],
)
def test_refused(server: Running, fields: dict[str, Any], code: str) -> None:
    with server.socket() as socket:
        token = socket.start(method="ar")["token"]
        say(socket, "we saw", final=False)
        socket.until("partial")
        socket.say(**fields)
        error = socket.until("error")[-1]
        assert (error["code"], error["fatal"]) == (code, False)
        assert error.get("request") == (fields["type"] if code == "caption" else None)
        answer = server.ask(f"/v1/control/{token}", fields)
        assert (answer.status, answer.json["error"]["code"]) == (409 if code == "caption" else 400, code)


def test_control_over_http(server: Running) -> None:
    token = (begun := server.ask("/v1/sessions", {"targets": ["de"]}).json)["token"]
    for seq, text in enumerate((b"we saw", b"her duck")):
        server.ask(f"/v1/ingest/{token}?seq={seq}", text)
    name = begun["session"]
    eventually(lambda: len(transcript(server, name)) == 2)

    def control(**message: Any) -> int:
        return server.ask(f"/v1/control/{token}", message).status

    assert control(type="correct", utterance="post-0", language="de", text="wir sahen") == 204
    assert control(type="hide", utterance="post-1") == 204
    assert transcript(server, name) == ["wir sahen"]
    assert control(type="pause") == 204
    assert server.hub.owned(token).transcript.paused
    assert control(type="end") == 400
    assert server.ask(f"/v1/control/{name}", {"type": "pause"}).status == 404  # viewers know its name


def test_restore_hidden(server: Running) -> None:
    token = "c" * 32
    with server.socket() as socket:
        name = socket.start(token=token)["session"]
        final = {"type": "final", "seq": 0, "language": "de", "source": "we saw"}
        known = [{**final, "utterance": name, "text": text} for name, text in (("1", "wir"), ("2", "sahen"))]
        keys = [("1", "de"), ("3", "de"), ("3", "fr")]
        hides = [{"type": "hide", "utterance": name, "language": tag, "decision": 1} for name, tag in keys]
        socket.say("declare", decisions=[{"type": "pause", "decision": 1}, *hides])
        socket.say("restore", finals=known)
        socket.until("paused")
        assert transcript(server, name) == []
        socket.say("pause", paused=False)
        socket.until("paused")
        assert transcript(server, name) == ["sahen"]
        with server.socket(f"/v1/watch/{name}") as viewer:
            say(socket, "it was", utterance="3")  # hidden before its first update
            socket.until("final")
            assert finals(nothing_more(viewer, socket)) == [("2", "de", "sahen")]


def test_live_transcript_while_paused(server: Running) -> None:
    import urllib.request

    with server.socket() as socket:
        name = socket.start(method="ar")["session"]
        speak(socket, "1", "we saw")
        with urllib.request.urlopen(f"{server.url}/v1/sessions/{name}/transcript?live=1", timeout=20) as live:
            assert live.readline().decode().rstrip() == expected("we saw")
            socket.say("pause")
            speak(socket, "2", "her duck")
            speak(socket, "3", "it was")
            socket.say("hide", utterance="3")
            socket.say("pause", paused=False)
            socket.say("end")
            assert live.read().decode().splitlines() == [expected("her duck")]


def test_file_follows(tmp_path: Path) -> None:
    with running(transcripts=tmp_path) as server, server.socket() as socket:
        name = socket.start(method="ar")["session"]
        for utterance, text in (("1", "we saw"), ("2", "her duck"), ("3", "it was")):
            speak(socket, utterance, text)
        eventually(lambda: list(tmp_path.glob(f"*{name}.jsonl")))
        (file,) = tmp_path.glob(f"*{name}.jsonl")
        eventually(lambda: len(file.read_text().splitlines()) == 6)  # what was spoken, too
        socket.say("correct", utterance="1", language="de", text="wir sahen")
        socket.say("hide", utterance="2")

        def texts() -> list[str]:
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            return [line["text"] for line in lines if line["language"] == "de"]

        eventually(lambda: texts() == ["wir sahen", expected("it was")])
        speak(socket, "4", "and")
        eventually(lambda: texts()[-1] == expected("and"))
        assert [path.name for path in tmp_path.iterdir()] == [file.name]
