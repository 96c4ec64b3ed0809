"""Requests without a key: many of them do not delay others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest import mock
from urllib.parse import quote

import pytest

from redraft import protocol
from redraft.captions.events import Caption
from redraft.protocol import Frame
from redraft.protocol.codes import Refused
from redraft.serve.http import api, endpoints, qr
from redraft.serve.http.qr import QrCodes
from redraft.serve.sessions.outbox import Outbox
from tests.serve.fakes import offline
from tests.serve.servers import SECONDS, Running, running


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def link(number: int) -> str:
    return f"https://example.org/watch?session={number:0440}"


def test_qr_code_in_a_thread(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, made = threading.Event(), threading.Event(), list[str]()

    def slow(link: str) -> bytes:
        made.append(link)
        begun.set()
        assert go.wait(SECONDS)
        return b"<svg/>"

    monkeypatch.setattr(qr, "_made", slow)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(server.ask, f"/v1/qr?link={quote(link(number), safe='')}") for number in range(3)]
        assert begun.wait(SECONDS)
        assert server.ask("/health").status == 200
        assert len(made) == 1  # one at a time
        go.set()
        assert {each.result(SECONDS).status for each in asked} == {200}


def test_qr_code_rates() -> None:
    async def ask(codes: QrCodes, numbers: range, addresses: int) -> list[str]:
        found = []
        for number in numbers:
            try:
                found.append((await codes.code(link(number), str(number % addresses))).decode())
            except Refused as refused:
                found.append(refused.code)
        return found

    async def work() -> None:
        codes = QrCodes()
        first = await ask(codes, range(20), 1)
        assert first[:5] == ["<svg/>"] * 5 and first[10:] == ["limit"] * 10
        assert await ask(codes, range(5), 1) == ["<svg/>"] * 5  # kept
        many = await ask(QrCodes(), range(100), 100)
        assert 8 <= many.count("<svg/>") < 20

    with mock.patch.object(qr, "_made", return_value=b"<svg/>"):
        asyncio.run(work())


def test_refused_qr_codes_over_http(server: Running) -> None:
    answers = [server.ask(f"/v1/qr?link={quote(link(number), safe='')}") for number in range(8)]
    refused = [answer for answer in answers if answer.status != 200]
    assert refused and all((each.status, each.json["error"]["code"]) == (429, "limit") for each in refused)


def test_many_languages(server: Running) -> None:
    query = "&".join(["language=de"] * 65)
    name = server.ask("/v1/sessions", {"targets": ["de"], "room": "hall-1"}).json["session"]
    assert server.ask(f"/v1/sessions/{name}/transcript?{query}").json["error"]["code"] == "option"
    for path in ("/v1/rooms/hall-1/watch", f"/v1/watch/{name}"):
        with server.socket(f"{path}?{query}") as viewer:
            assert viewer.hear()["code"] == "option"


def test_long_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """The captions of hours are not made at once for a viewer, and those hidden meanwhile are not sent."""
    live, made = offline("de"), list[str]()

    def frame_of(caption: Caption, **more: object) -> Frame:
        made.append(caption.utterance)
        return Frame("final", caption.utterance)

    for number in range(500):
        live.broadcast.final(Caption(str(number), 0, "de", "wir", "", True), 0.0)
    monkeypatch.setattr(protocol, "frame_of", frame_of)

    async def read() -> list[str]:
        outbox = Outbox(16)
        live.broadcast.watch(outbox)
        assert made == []
        heard = [frame.text for _ in range(2) if (frame := await outbox.get())]
        assert len(made) == 2
        live.broadcast.hide(("7", "de"), True)
        live.broadcast.final(Caption("500", 0, "de", "wir", "", True), 0.0)
        outbox.close(1000, "")
        while (message := await outbox.get()) is not None:
            heard.append(message.text)
        return heard

    heard = asyncio.run(read())
    shown = [str(number) for number in range(500) if number != 7]
    assert heard[: len(shown)] == shown and heard[-1] == "500" and len(heard) == len(shown) + 2


def test_long_live_transcript() -> None:
    live = offline("de")
    for number in range(500):
        live.broadcast.final(Caption(str(number), 0, "de", f"wir {number}", "", True), 0.0)
    live.transcript.close()

    async def pieces() -> list[str]:
        return [piece async for piece in live.transcript.live("txt", ["de"])]

    found = asyncio.run(pieces())
    assert len(found) == 10 and "".join(found) == live.transcript.text("txt", ["de"])


def test_descriptions_are_made_once(server: Running) -> None:
    assert server.ask("/docs").text == server.ask("/docs").text == api.page()
    endpoints._talk()
    with mock.patch.object(endpoints, "load_talk", side_effect=AssertionError):
        endpoints._talk()
