"""The name of a speaker through a server: by websocket and by POST, to viewers, transcripts and other servers."""

from __future__ import annotations

from typing import Any

import pytest

from redraft import protocol
from redraft.captions.events import Caption, Update
from redraft.client.wire import message_of
from tests.serve.servers import Running, Socket


def speakers(messages: list[dict[str, Any]]) -> list[str | None]:
    return [each.get("speaker") for each in messages if each["type"] in ("partial", "final")]


def update(socket: Socket, seq: int, **fields: Any) -> None:
    socket.say("update", utterance="1", seq=seq, text="we saw her duck"[: 6 + 4 * seq], **fields)


def test_websocket(server: Running) -> None:
    with server.socket() as socket:
        started = socket.start("de", options={"beta": 0})
        with server.socket(f"/v1/watch/{started['session']}") as viewer:
            update(socket, 0, speaker="Anna\tWeiß ", time=0.0)
            update(socket, 1, speaker="Anna Weiß", final=True, time=1.0)
            for each in (socket, viewer):
                assert set(speakers(each.until("final"))) == {"Anna Weiß"}
        for form in ("srt", "jsonl", "txt"):
            text = server.ask(f"/v1/sessions/{started['session']}/transcript?format={form}").text
            assert "Anna Weiß" in text


def test_not_a_name(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de")
        for speaker in (" ", "a" * 101, 7):
            update(socket, 0, speaker=speaker)
            error = socket.until("error")[-1]
            assert (error["code"], error["field"]) == ("protocol", "speaker")


def test_restore(server: Running) -> None:
    with server.socket() as socket:
        started = socket.start("de")
        final = Caption("1", 0, "de", "wir sahen", "", True, 1.0, "we saw", speaker="Anna")
        made = protocol.FROM_SERVER.validate_json(protocol.frame_of(final).text)
        assert isinstance(made, protocol.Final) and protocol.caption_of(made) == final
        socket.connection.send(f'{{"type":"restore","finals":[{made.wire()}]}}')
        socket.say("end")
        socket.until("done")
        assert "Anna: wir sahen" in server.ask(f"/v1/sessions/{started['session']}/transcript").text


def test_client() -> None:
    message = message_of(Update("1", 0, "we saw", speaker="Anna"))
    read = protocol.FROM_CLIENT.validate_json(message.wire())
    assert isinstance(read, Update) and (read.speaker, read.text, read.seq) == ("Anna", "we saw", 0)


@pytest.mark.parametrize(
    ("query", "status", "speaker"),
    [
        ("", 200, None),
        ("&speaker=Anna", 200, "Anna"),
        # A no-break space and a joiner are parts of names.
        ("&speaker=Dr.%C2%A0Wei%C3%9F", 200, "Dr.\xa0Weiß"),
        ("&speaker=%D8%B9%E2%80%8C%D9%84", 200, "\u0639\u200c\u0644"),
    ],
)
def test_post(server: Running, query: str, status: int, speaker: str | None) -> None:
    begun = server.ask("/v1/sessions", {"targets": ["de"]}).json
    with server.socket(f"/v1/watch/{begun['session']}") as viewer:
        path = f"/v1/ingest/{begun['token']}?seq=0{query}"
        assert server.ask(path, b"we saw her duck", headers={"content-type": "text/plain"}).status == status
        assert speakers(viewer.until("final"))[-1] == speaker
