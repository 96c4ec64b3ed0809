"""Requests over plain HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse

from redraft.errors import OptionError
from redraft.serve.access import ApiKeys, Rate, Rates, new_key, one_client
from redraft.serve.http.security import HEADERS, Guard
from redraft.serve.settings import ServeSettings
from tests.serve.servers import SECONDS, Running, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def test_translate(server: Running) -> None:
    before = server.engine.scheduler.lanes
    answer = server.ask("/v1/translate", {"text": "we saw", "targets": ["de", "ja"], "method": "ar"})
    assert answer.status == 200
    assert answer.json["translations"] == {"de": expected("we saw"), "ja": expected("we saw", "ja")}
    assert answer.json["failures"] == []
    server.engine.call(lambda: None).result(SECONDS)
    assert server.engine.scheduler.lanes == before and server.engine.scheduler.requests == 0


def test_translate_lines(server: Running) -> None:
    answer = server.ask(
        "/v1/translate", {"text": "\n we saw\r\n\n  her duck \n\n", "targets": ["de", "ja"], "method": "ar"}
    )
    wanted = {tag: f"\n {expected('we saw', tag)}\r\n\n  {expected('her duck', tag)} \n\n" for tag in ("de", "ja")}
    assert answer.json == {"translations": wanted, "failures": []}
    assert server.ask("/v1/translate", {"text": " \n", "targets": ["de"]}).status == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"targets": ["de"]}, "protocol"),
        ({"text": "a", "targets": ["xx-none"]}, "option"),
        ({"text": "a", "targets": ["de"], "model": "x"}, "protocol"),
        ({"text": "a" * 70_000, "targets": ["de"]}, "size"),
        (b"\xff", "protocol"),
    ],
)
def test_bad_requests(server: Running, body: Any, code: str) -> None:
    answer = server.ask("/v1/translate", body)
    assert (answer.status, answer.json["error"]["code"]) == (413 if code == "size" else 400, code)


def test_content_type(server: Running) -> None:
    assert server.ask("/v1/translate", b"{}", headers={"content-type": "text/plain"}).status == 400


def test_captions_by_post(server: Running) -> None:
    started = server.ask("/v1/sessions", {"targets": ["de"], "options": {"beta": 0}})
    assert started.status == 201
    path = f"/v1/ingest/{started.json['token']}"
    assert server.ask(path).text == "-1\n"
    assert server.ask(f"{path}?seq=1&lang=en-US", b"we saw").text == "1\n"
    assert server.ask(f"{path}?seq=1", b"we saw").text == "1\n"  # again, since no answer had come
    assert server.ask(f"{path}?seq=2&final=false", b"her").text == "2\n"
    assert server.ask(f"{path}?seq=5", b"her duck").text == "5\n"
    assert server.ask(path).text == "5\n"
    assert server.ask(f"{path}?seq=2&final=false", b"her").text == "5\n"  # again, and late
    assert server.ask(path, method="DELETE").status == 204
    with urllib.request.urlopen(
        f"{server.url}/v1/sessions/{started.json['session']}/transcript?live=true", timeout=SECONDS
    ) as live:
        assert live.read().decode().splitlines() == [expected("we saw"), expected("her duck")]
    for wrong in ("", "?seq=-1", "?seq=x", "?seq=1&final=perhaps"):
        assert server.ask(path + wrong, b"a").status == 400
    assert server.ask("/v1/ingest/unknown?seq=1", b"a").status == 404


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("text/plain", "né".encode("latin-1"), 400),
        ("text/plain; charset=utf-16", "wé".encode("utf-16"), 400),
        ('text/plain; charset="UTF-8"', "né".encode(), 200),
        ("", b"we saw", 200),
    ],
)
def test_post_encoding(server: Running, kind: str, body: bytes, status: int) -> None:
    path = f"/v1/ingest/{server.ask('/v1/sessions', {'targets': ['de']}).json['token']}"
    answer = server.ask(f"{path}?seq=0", body, headers={"content-type": kind})
    assert answer.status == status
    assert server.ask(path).text == ("0\n" if status == 200 else "-1\n")
    assert status == 200 or answer.json["error"]["code"] == "protocol"


def test_transcript_formats(server: Running) -> None:
    with server.socket() as socket:
        session = socket.start("de", "ja")["session"]
        path = f"/v1/sessions/{session}/transcript"
        say(socket, "we saw", "we saw <b>")
        while len(finals(socket.until("final"))) < 1 or server.ask(path).text.count("\n") < 2:
            pass
        begun = urllib.request.urlopen(f"{server.url}{path}?format=srt&live=1", timeout=SECONDS)
        with begun as live:
            say(socket, "her duck", utterance="2")
            first = live.readline().decode() + live.readline().decode()
            assert first == "1\n00:00:00,000 --> 00:00:01,000\n"  # written when the next cue is known
            socket.say("end")
            socket.until("done")
            rest = live.read().decode()
        assert first + rest == server.ask(f"{path}?format=srt").text
        vtt = server.ask(f"{path}?format=vtt&language=ja")
        shown = [line for line in vtt.text.splitlines()[1:] if not line.isdigit() and "-->" not in line]
        said = f"{expected('we saw <b>', 'ja')} {expected('her duck', 'ja')}"
        assert vtt.text.startswith("WEBVTT\n\n1\n") and " ".join(" ".join(shown).split()) == said
        assert vtt.headers["content-type"] == "text/vtt; charset=utf-8"
        rows = [json.loads(row) for row in server.ask(f"{path}?format=jsonl").text.splitlines()]
        assert [(row["utterance"], row["language"]) for row in rows] == [(n, t) for n in "12" for t in ("de", "ja")]
        assert server.ask(f"{path}?language=ja").text.splitlines()[1] == expected("her duck", "ja")
        assert server.ask(f"/v1/sessions/{session}").json == {
            "session": session,
            "source_language": "en",
            "targets": ["de", "ja"],
            "done": True,
        }
        assert [server.ask(path + query).status for query in ("?format=pdf", "?language=fr")] == [400, 400]
        assert server.ask("/v1/sessions/unknown/transcript").status == 404


def test_health_and_metrics(server: Running) -> None:
    assert server.ask("/health").json == server.ask("/ready").json == {"status": "ok"}
    server.ask("/v1/translate", {"text": "we saw", "targets": ["de"]})
    text = server.ask("/metrics").text
    for line in ("redraft_sessions ", "redraft_pass_seconds_count ", 'redraft_captions_total{kind="final"} '):
        assert line in text
    assert "we saw" not in text
    assert server.ask("/openapi.json").json["openapi"].startswith("3.1")
    asyncapi = server.ask("/asyncapi.json").json
    assert {"Start", "Partial", "Done"} <= asyncapi["components"]["messages"].keys()
    for name in ("watch", "room"):  # `started` has the owner's token, and only the owner gets it
        messages = asyncapi["channels"][name]["messages"]
        assert {"Partial", "Hidden", "Done"} <= messages.keys() and "Started" not in messages
    page = server.ask("/docs").text
    assert (
        "<code>start</code>" in page and page.count("<script") == page.count('<script src="./js/pages/theme.js">') == 1
    )


def test_missing_page(server: Running) -> None:
    answer = server.ask("/no<b>where", headers={"accept": "text/html,*/*;q=0.8"})
    assert answer.status == 404 and answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<code>/no&lt;b&gt;where</code>" in answer.text and 'href="./css/base.css"' in answer.text
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert server.ask("/nowhere", headers={"accept": "*/*"}).json["error"]["code"] == "missing"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


@pytest.mark.parametrize("path", ["/openapi.json", "/asyncapi.json"])
def test_schema_references(server: Running, path: str) -> None:
    whole = server.ask(path).json
    found = set(references(whole))
    assert len(found) >= 5
    for reference in found:
        place = whole
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


# Who may connect


def test_security_headers(server: Running) -> None:
    for path in ("/docs", "/health", "/nowhere"):
        headers = server.ask(path).headers
        assert all(headers[name] == value for name, value in HEADERS.items())
    assert "unsafe" not in HEADERS["content-security-policy"]


@pytest.mark.parametrize(
    ("headers", "path", "method", "status"),
    [
        ({"origin": "http://evil.example"}, "/v1/translate", "POST", 403),
        ({"origin": "null"}, "/v1/translate", "POST", 403),
        ({"origin": "http://evil.example"}, "/health", "GET", 200),
        ({"origin": "http://["}, "/v1/translate", "POST", 403),
        ({"origin": "http://[::1"}, "/v1/translate", "POST", 403),
        ({"origin": "//"}, "/v1/translate", "POST", 403),
        ({"origin": "http://evil.example\\@127.0.0.1"}, "/v1/translate", "POST", 403),
        ({"host": "evil.example"}, "/v1/offer", "GET", 403),
        ({"host": "evil.example"}, "/", "GET", 403),
        ({"host": "evil.example"}, "/healthy", "GET", 403),
        ({"host": "10.0.0.7:8765"}, "/health", "GET", 200),
        ({"host": "10.0.0.7:8765"}, "/ready", "GET", 200),
        ({"host": "10.0.0.7:8765"}, "/metrics", "GET", 200),
        ({"host": "localhost:1"}, "/health", "GET", 200),
        ({"host": "[::1]:80"}, "/health", "GET", 200),
        ({"host": "[nonsense"}, "/v1/offer", "GET", 403),
    ],
)
def test_foreign_origins_and_hosts(
    server: Running, headers: dict[str, str], path: str, method: str, status: int
) -> None:
    answer = server.ask(path, method=method, headers=headers)
    assert answer.status == status
    assert status == 200 or answer.json["error"]["code"] == "origin"


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 403), ("", 403)])
def test_local_only(address: str, status: int) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {"type": "http", "method": "GET", "headers": [], "client": (address, 1) if address else None}
    hub = mock.Mock(settings=ServeSettings(host="0.0.0.0"), engines=mock.Mock(working=False))
    asyncio.run(Guard(PlainTextResponse("here"), hub, local=True)(scope, mock.Mock(), send))
    assert sent[0]["status"] == status


def test_one_client() -> None:
    """All addresses of a /64 have one share, as have an address of IPv4 and the same one in IPv6."""
    network = ip_network("2001:db8:1:2::/64")
    addresses = [str(network[place]) for place in (1, 2, 2**40, 2**64 - 1)]
    assert len({one_client(each) for each in addresses}) == 1
    assert one_client("2001:db8:1:3::1") != one_client(addresses[0])
    assert one_client("::ffff:192.0.2.1") == one_client("192.0.2.1") != one_client("192.0.2.2")
    assert one_client(one_client(addresses[0])) == one_client(addresses[0])
    assert one_client("fe80::1%eth0") == one_client("fe80::2%eth1")
    rates = Rates(0.001, 5)
    assert sum(not rates.take(str(network[number])) for number in range(100)) == 5


def test_websocket_origin(server: Running) -> None:
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus), server.socket(origin="http://evil.example"):
        pass
    with server.socket(origin=server.url) as socket:
        assert socket.start()["type"] == "started"
    with running(origins=("http://stage.example",)) as other, other.socket(origin="http://stage.example") as socket:
        assert socket.start()["type"] == "started"


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key, other = new_key(path, "stage"), new_key(path, "hall")
    assert key not in path.read_text() and path.stat().st_mode & 0o077 == 0
    with running(keys=path) as server:
        body = {"text": "a", "targets": ["de"]}
        for headers, status in (
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({"authorization": f"Bearer {key}"}, 200),
        ):
            assert server.ask("/v1/translate", body, headers=headers).status == status
        assert (server.ask("/metrics").status, server.ask("/health").status) == (401, 200)
        for given in ({}, {"key": "wrong"}):
            with server.socket() as socket:
                assert socket.start(**given)["code"] == "key"
        with server.socket() as socket:
            token = socket.start(key=key)["token"]
        with server.socket(additional_headers={"authorization": f"Bearer {other}"}) as socket:
            assert socket.start(token=token)["code"] == "key"


@pytest.mark.parametrize("name", ["", "a:b", " a", "#a", "a\nb"])
def test_names_of_keys(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="name of a key"):
        new_key(tmp_path / "keys", name)


@pytest.mark.parametrize("line", ["nonsense", "a:zz", "a:00", f":{'0' * 64}"])
def test_invalid_key_file(tmp_path: Path, line: str) -> None:
    (tmp_path / "keys").write_text(f"# keys\n\n{line}\n")
    with pytest.raises(OptionError, match="line 3: must be NAME:SHA256"):
        ApiKeys(tmp_path / "keys")
    with pytest.raises(OptionError, match="cannot be read"):
        ApiKeys(tmp_path / "none")


@given(st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_rate(waits: list[float]) -> None:
    rate, taken, now = Rate(2, 3), 0, 0.0
    for wait in waits:
        now += wait
        taken += rate.take(now) == 0
        assert taken <= 3 + 2 * now + 1e-6
    if wait := rate.take(now):
        assert rate.take(now + wait + 1e-9) == 0


def test_rate_per_address() -> None:
    rates = Rates(0.001, 1)
    assert [rates.take(address) > 0 for address in ("a", "a", "b")] == [False, True, False]


def test_threads_of_the_tests_end(server: Running) -> None:
    assert server.hub.engines.alive
    eventually(lambda: sum(thread.name == "redraft-engine" for thread in threading.enumerate()) == 1)
