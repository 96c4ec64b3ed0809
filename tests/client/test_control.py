"""A client's control over viewers' captions, and its room."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable

import pytest

from redraft import protocol
from redraft.captions.events import Caption, Update
from redraft.client import Client, ServerError
from redraft.client.control import Control
from redraft.errors import InputError, OptionError
from tests.client.lines import EXACT, QUICK, line, run
from tests.serve.servers import Running, running
from tests.serve.talking import expected, hidden_in


def transcript(server: Running, client: Client) -> list[str]:
    return server.ask(f"/v1/sessions/{client.session}/transcript").text.splitlines()


async def comes(check: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(check):
            await asyncio.sleep(0.01)


async def final(client: Client, utterance: str, text: str) -> None:
    """Send an utterance, and wait for its caption."""
    await client.send(Update(utterance, 0, text, True))
    async for event in client:
        if isinstance(event, Caption) and event.utterance == utterance:
            return


def test_pause_hide_correct() -> None:
    async def work(server: Running) -> None:
        async with Client(server.url, ["de"], method=EXACT) as client:
            await final(client, "1", "we saw")
            await final(client, "2", "her duck")
            client.control.correct("1", "de", "wir sahen")
            client.control.hide("2")
            await comes(lambda: transcript(server, client) == ["wir sahen"])
            client.control.hide("2", hidden=False)
            client.control.pause()
            await final(client, "3", "it was")
            await comes(lambda: transcript(server, client) == ["wir sahen", expected("her duck")])
            assert client.control.paused
            client.control.pause(False)
            await comes(lambda: len(transcript(server, client)) == 3)
            await client.end()
            assert [event async for event in client] == []  # a correction is no second final caption

    with running() as server:
        run(work(server))


def test_refused_control() -> None:
    async def work(server: Running) -> None:
        async with Client(server.url, ["de"], method=EXACT) as client:
            await final(client, "1", "we saw")
            with pytest.raises(InputError, match="text"):
                client.control.correct("1", "de", " ")
            client.control.hide("9")  # it may still come
            await client.end()
            assert [event async for event in client] == []
            assert client.control.hidden == {("9", "de")}
        with pytest.raises(ServerError, match="the session is over"):
            client.control.pause()

    with running() as server:
        run(work(server))


def test_control_after_restart() -> None:
    async def work(server: Running, other: Running) -> None:
        async with (
            line(server.port) as cable,
            Client(f"http://127.0.0.1:{cable.port}", ["de"], method=EXACT, backoff=QUICK, room="hall-1") as client,
        ):
            for utterance, text in (("1", "we saw"), ("2", "her duck")):
                await final(client, utterance, text)
            await client.send(Update("3", 0, "it"))
            client.control.correct("1", "de", "wir sahen")
            client.control.hide("2")
            client.control.pause()
            await comes(lambda: server.hub.rooms.find("hall-1").session.transcript.paused)  # type: ignore[union-attr]
            cable.to = other.port
            cable.cut()
            client.control.hide("3")  # while there is no connection
            await comes(lambda: bool(other.hub.sessions))
            session = other.hub.sessions[client.session]
            await comes(lambda: len(hidden_in(session)) == 2)
            assert session.transcript.paused and transcript(other, client) == []
            client.control.pause(False)
            await comes(lambda: transcript(other, client) == ["wir sahen"])
            await final(client, "3", "it was")
            assert transcript(other, client) == ["wir sahen"]
            assert other.ask("/v1/rooms/hall-1").json["session"] == client.session

    with running() as server, running() as other:
        run(work(server, other))


def test_correction_before_the_caption() -> None:
    control = Control(("de",), lambda: None, lambda key: False)
    with pytest.raises(InputError, match="utterance"):
        control.correct("1", "de", "wir sahen")
    assert control.next() is None


def test_spelling() -> None:
    control = Control(("pt-BR", "de"), lambda: None, lambda key: True)
    control.hide("1", "pt")
    control.correct("1", "German", "wir")
    assert [control.next(), control.next()] == [
        protocol.Hide(utterance="1", language="pt-BR", decision=1),
        protocol.Correct(utterance="1", language="de", text="wir", decision=1),
    ]
    assert control.hidden == {("1", "pt-BR")} and control.is_hidden("1", "pt-BR")


def test_named_speaker_after_restart() -> None:
    async def work(server: Running, other: Running) -> None:
        async with (
            line(server.port) as cable,
            Client(f"http://127.0.0.1:{cable.port}", ["de"], method=EXACT, backoff=QUICK) as client,
        ):
            await client.send(Update("1", 0, "we saw", final=True, speaker="Speaker 1"))
            client.control.name("Speaker 1", "Anna")
            with pytest.raises(InputError, match="name"):
                client.control.name("Speaker 1", "")
            await comes(lambda: bool(server.hub.sessions[client.session].transcript.names))
            cable.to = other.port
            cable.cut()
            await comes(lambda: bool(other.hub.sessions))
            await client.send(Update("2", 0, "it was", final=True, speaker="Speaker 1"))
            await comes(lambda: [each[:6] for each in transcript(other, client)] == ["Anna: "] * 2)

    with running() as server, running() as other:
        run(work(server, other))


def test_control_by_others() -> None:
    async def work(server: Running) -> None:
        async with Client(server.url, ["de"], method=EXACT) as client:
            await final(client, "1", "we saw")
            token = server.hub.sessions[client.session].token
            naming = {"type": "name", "speaker": "Speaker 1", "name": "Anna"}
            for message in (naming, {"type": "pause"}, {"type": "hide", "utterance": "1"}):
                await asyncio.to_thread(server.ask, f"/v1/control/{token}", message)
            await comes(lambda: client.control.paused and client.control.hidden == {("1", "de")})
            assert ("name", "Speaker 1") in client.control._decisions

    with running() as server:
        run(work(server))


def test_latest_decision_counts() -> None:
    control = Control(("de",), lambda: None, lambda key: True)
    control.pause()
    control.pause(False)
    assert control.next() == protocol.Pause(paused=False, decision=2) and control.next() is None
    control.reported(protocol.Pause(paused=True, decision=1))  # of the first, which was under way
    assert not control.paused
    control.reported(protocol.Pause(paused=True, decision=3))  # of another program
    assert control.paused
    (declared,) = control.declaration(999)
    assert json.loads(str(declared))["decisions"] == [{"type": "pause", "paused": True, "decision": 3}]


def test_one_client_per_room() -> None:
    async def work(server: Running) -> None:
        async with Client(server.url, ["de"], method=EXACT, room="hall-1") as first:
            assert first.viewers_page == f"{server.url}/watch/hall-1"
            with pytest.raises(ServerError, match="hall-1") as refused:
                async with Client(server.url, ["de"], method=EXACT, room="hall-1"):
                    raise AssertionError
            assert refused.value.code == "room"
            async with Client(server.url, ["de"], method=EXACT, room="hall-1", take_over=True) as second:
                with pytest.raises(ServerError, match="hall-1"):
                    await final(first, "1", "we saw")
                await final(second, "1", "we saw")
                with urllib.request.urlopen(f"{server.url}/v1/rooms/hall-1", timeout=20) as found:
                    assert json.loads(found.read())["session"] == second.session

    with running() as server:
        run(work(server))
    with pytest.raises(OptionError, match="room"):
        Client("http://a", ["de"], room="Hall 1")
