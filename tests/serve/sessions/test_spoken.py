"""The language that is spoken is one of the session's: viewers get it if they ask, and the owner decides about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from redraft import protocol
from redraft.captions.events import Update
from redraft.cli.transcript import transcript
from redraft.protocol import Frame
from redraft.serve.sessions.broadcast import Outbox
from redraft.serve.sessions.live import LiveSession
from tests.serve.fakes import offline
from tests.serve.servers import running
from tests.serve.talking import expected, say


def heard(outbox: Outbox) -> list[dict[str, Any]]:
    """What is queued now."""
    queued = ([each] if isinstance(each, Frame) else list(each) for each in outbox._waiting.values())
    found = [json.loads(message.text) for messages in queued for message in messages]
    outbox._waiting.clear()
    return found


def reader(live: LiveSession) -> Outbox:
    """A viewer of the language that is spoken."""
    outbox = Outbox(99, languages=frozenset({"en"}))
    live.broadcast.watch(outbox)
    return outbox


def test_viewers_who_ask_for_it() -> None:
    with running() as server, server.socket() as socket:
        name = socket.start("de", "ja", room="hall-1")["session"]
        with server.socket("/v1/rooms/hall-1/watch?language=English&language=ja") as viewer:
            say(socket, "we saw", "we saw her")
            found = viewer.until("final") + viewer.until("final")
            ends = [(each["language"], each["text"]) for each in found if each["type"] == "final"]
            assert ends == [("en", "we saw her"), ("ja", expected("we saw her", "ja"))]
            socket.say("end")
            assert {each.get("language") for each in socket.until("done")} <= {"de", "ja", None}  # the owner knows it
        with server.socket(f"/v1/watch/{name}?language=en") as late:
            assert [(each["type"], each.get("text")) for each in late.until("done")] == [
                ("final", "we saw her"),
                ("done", None),
            ]


def test_held_back() -> None:
    live = offline("de", "ja")
    viewer, others = reader(live), Outbox(99)
    live.broadcast.watch(others)
    live.accept(Update("1", 0, "we"))
    assert [(each["type"], each["text"]) for each in heard(viewer)] == [("partial", "we")]
    live.broadcast.pause(True)
    live.accept(Update("1", 1, "we saw", final=True))
    assert [each["type"] for each in heard(viewer)] == ["pause"] and list(live.transcript.finals) == []
    live.broadcast.pause(False)
    assert [(each["type"], each.get("text")) for each in heard(viewer)] == [("pause", None), ("final", "we saw")]
    assert {each["type"] for each in heard(others)} == {"pause"}


DECISIONS = st.lists(st.tuples(st.sampled_from([None, "de", "ja", "en"]), st.booleans()), max_size=8)


@given(DECISIONS, st.integers(0, 8))
def test_hidden_with_its_translations(decisions: list[tuple[str | None, bool]], late: int) -> None:
    """It is hidden while all translations are, unless the owner has decided about it; viewers see just that."""
    live = offline("de", "ja")
    viewer, hidden, own, shown = reader(live), {"de": False, "ja": False}, None, ""
    live.transcript.utterance("1")
    for place, (language, hide) in enumerate(decisions):
        if place == late:
            live.accept(Update("1", 0, "we saw", final=True))
        live.control(protocol.Hide(utterance="1", language=language, hidden=hide))
        own = hide if language == "en" or (language is None and own is not None) else own
        hidden |= {each: hide for each in hidden if language in (None, each)}
    if late >= len(decisions):
        live.accept(Update("1", 0, "we saw", final=True))
    for message in heard(viewer):
        shown = message["text"] if message["type"] == "final" else ""
    gone = all(hidden.values()) if own is None else own
    assert shown == ("" if gone else "we saw")
    assert [caption.text for caption in live.transcript.finals] == ([] if gone else ["we saw"])


def test_restored(tmp_path: Path) -> None:
    """After a restart it comes from the captions that the client has, once, or as it was corrected."""
    live = offline("de", "ja")
    viewer = reader(live)
    live.restore([protocol.Final("1", 0, "en", "We saw.", corrected=1)])
    for name in ("1", "2"):
        live.restore([protocol.Final(name, 0, tag, "da", source="we saw", made=1.0) for tag in ("de", "ja")])
    found = [(each["utterance"], each["text"], each["made"] == 1.0) for each in heard(viewer)]
    assert found == [("1", "We saw.", False), ("2", "we saw", True)]
    lines = "".join(live.file._line(key) for key, _ in live.transcript.cells)
    file = tmp_path / "talk.jsonl"
    file.write_text(lines, "utf-8")
    for options, text in (["--to", "en"], "We saw.\nwe saw\n"), ([], "de: da\nja: da\n" * 2):
        assert CliRunner().invoke(transcript, [str(file), *options]).output == text


def test_same_as_a_target() -> None:
    live = offline("en-US", "de")
    live.accept(Update("1", 0, "we saw", final=True))
    assert live.transcript.languages == live.targets and list(live.transcript.finals) == []
