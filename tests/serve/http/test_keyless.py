"""Requests without a key: many of them do not delay others."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from unittest import mock
from urllib.parse import quote

import pytest

from redraft.protocol.codes import Refused
from redraft.serve.http import pages
from redraft.serve.http.endpoints import QrCodes
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

    monkeypatch.setattr("redraft.serve.http.endpoints._made", slow)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(server.ask, f"/v1/qr?link={quote(link(number), safe='')}") for number in range(3)]
        assert begun.wait(SECONDS)
        assert server.ask("/health").status == 200
        assert len(made) == 1  # one at a time
        go.set()
        assert {each.result(SECONDS).status for each in asked} == {200}


def test_one_qr_code_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hall that opens a page at the same moment gets one code, which counts once."""
    made = list[str]()

    def make(link: str) -> bytes:
        made.append(link)
        return b"<svg/>"

    async def work() -> None:
        codes = QrCodes()
        found = await asyncio.gather(*(codes.code(link(number % 2), "hall") for number in range(100)))
        assert found == [b"<svg/>"] * 100

    monkeypatch.setattr("redraft.serve.http.endpoints._made", make)
    asyncio.run(work())
    assert made == [link(0), link(1)]


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

    with mock.patch("redraft.serve.http.endpoints._made", return_value=b"<svg/>"):
        asyncio.run(work())


def test_refused_qr_codes_over_http(server: Running) -> None:
    answers = [server.ask(f"/v1/qr?link={quote(link(number), safe='')}") for number in range(8)]
    refused = [answer for answer in answers if answer.status != 200]
    assert refused and all((each.status, each.json["error"]["code"]) == (429, "limit") for each in refused)


@pytest.mark.parametrize("query", ["&".join(["language=de"] * 65), "language=nonsense"])
def test_refused_languages(server: Running, caplog: pytest.LogCaptureFixture, query: str) -> None:
    caplog.set_level(logging.ERROR)
    name = server.ask("/v1/sessions", {"targets": ["de"], "room": "hall-1"}).json["session"]
    assert server.ask(f"/v1/sessions/{name}/transcript?{query}").json["error"]["code"] == "option"
    for path in ("/v1/rooms/hall-1/watch", f"/v1/watch/{name}"):
        with server.socket(f"{path}?{query}") as viewer:
            assert viewer.hear()["code"] == "option"
    assert not caplog.records


def unpacked(server: Running, path: str, headers: dict[str, str]) -> tuple[int, str | None, str]:
    """Status, tag and text of a page."""
    asking = urllib.request.Request(server.url + path, headers=headers)
    try:
        with urllib.request.urlopen(asking, timeout=SECONDS) as found:
            return found.status, found.headers["etag"], gzip.decompress(found.read()).decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["etag"], error.read().decode()


def test_pages_are_packed_once(server: Running) -> None:
    pages._file.cache_clear()
    with mock.patch("redraft.serve.http.pages.gzip.compress", wraps=gzip.compress) as packing:
        for path in ("/watch", "/js/pages/watch.js", "/css/base.css", "/icon.svg"):
            answers = [unpacked(server, path, {"accept-encoding": "gzip"}) for _ in range(3)]
            assert answers[0] == answers[1] == answers[2] and answers[0][0] == 200
            tag = str(answers[0][1])
            assert unpacked(server, path, {"accept-encoding": "gzip", "if-none-match": f"W/{tag}"}) == (304, tag, "")
    assert packing.call_count == 4


#: Most functions that a request without a key calls on the event loop: at least some 600, and 140,000 for a QR code.
MOST_CALLS = 8000


#: As many languages as may be asked for; each is known, and takes long to find.
LANGUAGES = "&".join(["language=Chinese%20(Traditional)"] * 64)


def calls_of(server: Running, work: Callable[[], object]) -> int:
    """How many functions the event loop calls meanwhile."""
    counted, ready = [0], threading.Event()

    def count(_frame: object, event: str, _argument: object) -> None:
        counted[0] += event == "call"

    def profile(function: Callable[..., Any] | None) -> None:
        sys.setprofile(function)
        ready.set()

    for function, then in ((count, work), (None, lambda: None)):
        ready.clear()
        server.call(partial(profile, function))
        assert ready.wait(SECONDS)
        then()
    return counted[0]


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/js/pages/main.js", "/nothing" + "/a" * 2000, "/watch/hall-1?" + "a=b&" * 2000),
        *("/docs", "/openapi.json", "/asyncapi.json", "/v1/offer", "/v1/talk", "/health", "/ready"),
        *("/v1/sessions/NAME", "/v1/rooms/hall-1", "/v1/ingest/NAME/seq", "/v1/sessions/NAME?" + "a=b&" * 3500),
        *(f"/v1/sessions/NAME/transcript?{LANGUAGES}", f"/v1/rooms/hall-1/transcript?{LANGUAGES}"),
        f"/v1/qr?link={quote(link(1), safe='')}",
    ],
    ids=lambda path: path[:40],
)
def test_event_loop_is_not_held_up(server: Running, path: str) -> None:
    """Requests, even the longest, have the event loop call few functions, counted after a first one."""
    name = server.ask("/v1/sessions", {"targets": ["zh-TW"], "room": "hall-1"}).json["session"]
    path = path.replace("NAME", name)
    server.ask(path)
    assert calls_of(server, lambda: server.ask(path.replace("00001", "00002"))) < MOST_CALLS


@pytest.mark.parametrize("headers", [1_000, 20_000])
def test_event_loop_is_not_held_up_by_headers(server: Running, headers: int) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + b"a:b\r\n" * headers + b"\r\n"

    def ask() -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head)
            while connection.recv(4096):
                pass

    ask()
    assert calls_of(server, ask) < MOST_CALLS


#: Run in a new process: what the loop calls for first requests, and the number of texts that are compressed for them.
FIRST = """
import gzip, json
from unittest import mock
from tests.serve.http.test_keyless import calls_of
from tests.serve.servers import running

def watch(server):
    with server.socket("/v1/rooms/hall/watch?language=German"):
        server.ask("/health")

with running(compat=("deepl", "libretranslate", "openai")) as server, mock.patch.object(gzip, "compress") as packing:
    found = {"viewer": calls_of(server, lambda: watch(server))}
    session = {"targets": ["Chinese (Traditional)"], "room": "hall"}
    found["session"] = calls_of(server, lambda: server.ask("/v1/sessions", session))
    found["sentences"] = calls_of(server, lambda: server.ask("/v1/sentences", {"text": "A. B."}))
    for path in (
        *("/docs", "/openapi.json", "/asyncapi.json", "/v1/offer", "/v1/talk", "/languages", "/v1/models", "/metrics"),
        *("/", "/js/captions/breaks.js", "/js/pages/watch.js", "/v1/rooms/hall/transcript?language=zh-TW"),
    ):
        found[path] = calls_of(server, lambda: server.ask(path))
    print(json.dumps([found, packing.call_count]))
"""


def test_first_requests() -> None:
    """What is made once is made before the server listens."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=3 * SECONDS)
    found, packed = json.loads(done.stdout)
    assert {name: calls for name, calls in found.items() if calls >= MOST_CALLS} == {}
    assert packed == 0


def test_event_loop_is_not_held_up_by_viewers(server: Running) -> None:
    name = server.ask("/v1/sessions", {"targets": ["zh-TW"]}).json["session"]

    def watch() -> None:
        with server.socket(f"/v1/watch/{name}?{LANGUAGES}"):
            server.ask("/health")

    watch()
    assert calls_of(server, watch) < MOST_CALLS
