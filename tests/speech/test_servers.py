"""Recognisers behind websockets: servers that crash, restart, send invalid messages, or nothing."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from redraft import deadlines
from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.deadlines import Backoff
from redraft.errors import InputError, MissingExtra
from redraft.speech import servers
from redraft.speech.audio import RATE, Samples
from redraft.speech.recogniser import transcribe
from redraft.speech.servers import ServerRecogniser
from tests.speech.servers import QUICK, Died, Talk, serving


def counted(seconds: float) -> Iterator[Samples]:
    """Blocks of a tenth of a second; every sample of a block has its number as the value."""
    for number in range(round(seconds * 10)):
        yield np.full(RATE // 10, number / 1000, np.float32)


def recognised_by(spec: str, seconds: float = 2.0) -> list[Item]:
    return list(transcribe(counted(seconds), ServerRecogniser(spec, QUICK)))


def finals(items: list[Item]) -> list[str]:
    return [item.text for item in items if isinstance(item, Update) and item.final]


def vosk(
    utterance: int = 10, *, dies_at: int | None = None, nonsense: str | None = None, log: list[int] | None = None
) -> Talk:
    """A vosk-server that hears the number of every block, and ends an utterance at every tenth block of the talk."""

    def talk(socket: Any) -> None:
        assert json.loads(socket.recv())["config"]["sample_rate"] == RATE
        numbers: list[str] = []
        for count, message in enumerate(socket):
            if message == '{"eof" : 1}':
                socket.send(json.dumps({"text": " ".join(numbers)}))
                return
            if count == dies_at:
                raise Died
            number = round(np.frombuffer(message, "<i2")[0] / 32767 * 1000)
            if log is not None:
                log.append(number)
            numbers.append(str(number))
            if nonsense is not None and number == 5:
                socket.send(nonsense)
            if (number + 1) % utterance:
                socket.send(json.dumps({"partial": " ".join(numbers)}))
            else:
                socket.send(json.dumps({"text": " ".join(numbers)}))
                numbers = []

    return talk


TENS = ["0 1 2 3 4 5 6 7 8 9", "10 11 12 13 14 15 16 17 18 19"]


def test_talk() -> None:
    with serving(vosk()) as url:
        items = recognised_by(f"vosk:{url}", 2.5)
    assert finals(items) == [*TENS, "20 21 22 23 24"]
    assert all(isinstance(item, Update) for item in items)
    times = [item.time or 0.0 for item in items if isinstance(item, Update) and item.final]
    assert times == sorted(times) and times[-1] == 2.5


@pytest.mark.parametrize("dies_at", [0, 3, 10, 14, 19])
def test_server_comes_back(dies_at: int) -> None:
    log: list[int] = []
    with serving(vosk(dies_at=dies_at), vosk(log=log)) as url:
        items = recognised_by(f"vosk:{url}", 2.5)
    assert finals(items) == [*TENS, "20 21 22 23 24"]
    assert all(isinstance(item, Update) for item in items)
    assert log[-1] == 24 and log == list(range(log[0], 25))  # nothing twice, nothing left out


def test_server_that_dies_at_end() -> None:
    def silent(socket: Any) -> None:
        for message in socket:
            if message == '{"eof" : 1}':
                raise Died

    with serving(silent, vosk()) as url:
        assert finals(recognised_by(f"vosk:{url}")) == TENS


def test_server_that_always_dies_at_end_is_given_up() -> None:
    with serving(dying_at_the_end) as url:
        items = list(transcribe(counted(0.5), ServerRecogniser(f"vosk:{url}", Backoff(0.01, 0.02, 0.1))))
    assert finals(items) == ["0 1 2 3 4"]
    assert isinstance(items[-1], Failure) and "the connection was lost" in items[-1].message


def dying_at_the_end(socket: Any) -> None:
    numbers: list[str] = []
    socket.recv()
    for message in socket:
        if message == '{"eof" : 1}':
            raise Died
        numbers.append(str(round(np.frombuffer(message, "<i2")[0] / 32767 * 1000)))
        socket.send(json.dumps({"partial": " ".join(numbers)}))


def test_server_that_stays_away_keeps_what_it_has_ended() -> None:
    def refuses(socket: Any) -> None:
        raise Died

    with serving(vosk(dies_at=14), refuses) as url:
        items = list(transcribe(counted(9), ServerRecogniser(f"vosk:{url}", Backoff(0.01, 0.02, 0.1))))
    assert finals(items)[0] == TENS[0]
    assert isinstance(items[-1], Failure)
    assert "the recogniser stopped after " in items[-1].message and "the connection was lost" in items[-1].message


def test_server_that_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has sent before it closed is read, even if the connection is found closed by sending."""
    from websockets.sync.connection import Connection

    ping = Connection.ping

    def late(connection: Connection) -> threading.Event:
        time.sleep(0.2)
        return ping(connection)

    monkeypatch.setattr(Connection, "ping", late)
    with serving(vosk()) as url:
        assert finals(recognised_by(f"vosk:{url}", 2.5)) == [*TENS, "20 21 22 23 24"]


@pytest.mark.parametrize(
    "nonsense",
    [
        *("{", "[1]", "{}", '{"partial": 7}', '{"text": "\\ud800"}', '{"text": "a", "result": [{"word": "a"}]}'),
        *(f'{{"text": "a", "result": [{{"start": {time}, "end": 1}}]}}' for time in ('"x"', "-1", "NaN", "null")),
    ],
)
def test_nonsense_is_one_failure(nonsense: str) -> None:
    with serving(vosk(nonsense=nonsense)) as url:
        items = recognised_by(f"vosk:{url}")
    assert finals(items) == TENS
    failures = [item.message for item in items if isinstance(item, Failure)]
    assert len(failures) == 1 and failures[0].startswith(f"a message of {url}/ cannot be used: ")


def test_server_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "RECOGNISER_ANSWERS", 0.1)

    def mute(socket: Any) -> None:
        for _ in socket:
            pass

    with serving(mute) as url:
        assert recognised_by(f"sherpa:{url}") == [
            Failure(f"{url}/ has not ended the audio's last utterance within 0.1 s")
        ]


def test_server_that_hangs_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the end was asked for, a server that does not even answer a ping is not waited for as long as others."""
    monkeypatch.setattr(deadlines, "LAST", 0.1)
    monkeypatch.setattr(servers, "_ASKED", 0.05)
    monkeypatch.setattr("websockets.sync.connection.Connection.ping", lambda _: threading.Event())

    def mute(socket: Any) -> None:
        for _ in socket:
            pass

    with serving(mute) as url:
        recogniser = ServerRecogniser(f"sherpa:{url}")
        recogniser.hurried.set()
        (failure,) = recogniser(iter(()))
    assert failure == Failure(f"{url}/ has not ended the audio's last utterance within 0.1 s")


def test_sherpa() -> None:
    def talk(socket: Any) -> None:
        received = 0
        for message in socket:
            if message == "Done":
                socket.send(json.dumps({"text": "THE END", "segment": 1, "is_final": True, "is_eof": True}))
                socket.send("Done!")
                continue
            received += len(message) // 4
            final = received >= RATE
            row = {"text": "A", "segment": 0, "is_final": final, "start_time": 0.2, "timestamps": [0.1]}
            if received <= RATE:
                socket.send(json.dumps(row))

    with serving(talk) as url:
        items = recognised_by(f"sherpa:{url}")
    assert finals(items) == ["A", "the end"]
    assert isinstance(items[0], Update) and items[0].start == pytest.approx(0.1, abs=0.11)


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=f"^the recogniser at ws://127.0.0.1:{port}/ cannot be reached: "):
        ServerRecogniser(f"vosk:ws://127.0.0.1:{port}")


def test_without_websockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets.exceptions", None)
    with pytest.raises(MissingExtra, match=r"websockets, which is not installed: pip install 'redraft\[listen\]'"):
        importlib.reload(servers)


def broadcasting(*texts: str, dies: bool = True) -> Talk:
    """A microphone server of Vosk: it sends everybody what it recognises."""

    def talk(socket: Any) -> None:
        for text in texts:
            socket.send(text)
        if dies:
            raise Died

    return talk


def test_server_that_listens_by_itself() -> None:
    first = broadcasting('{"text": "one"}', "nonsense", '{"partial": "tw"}')
    second = broadcasting('{"partial": "three"}', '{"text": "three four"}')
    with serving(first, second, broadcasting()) as url:
        items = list(ServerRecogniser(f"vosk:{url}", Backoff(0.01, 0.02, 0.2)).overhear())
    assert finals(items) == ["one", "tw", "three four"]
    failures = [item.message for item in items if isinstance(item, Failure)]
    assert "a message of" in failures[0] and "the connection was lost" in failures[1] and len(failures) == 2


def test_server_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words are final, even if it sends nothing more."""
    monkeypatch.setattr(servers, "_ASKED", 0.1)
    left = threading.Event()

    def talk(socket: Any) -> None:
        socket.send('{"text": "one"}')
        socket.send('{"partial": "two"}')
        assert left.wait(20)

    with serving(talk) as url:
        server = ServerRecogniser(f"vosk:{url}", QUICK)
        threading.Timer(0.4, server.hurried.set).start()
        items = list(server.overhear())
        left.set()
    assert finals(items) == ["one", "two"]


def test_end_while_server_is_away() -> None:
    """Nothing is waited for, and what was recognised is final."""
    news: list[str] = []

    def talk(socket: Any) -> None:
        vosk(dies_at=3)(socket)

    def gone(socket: Any) -> None:
        raise Died

    with serving(talk, gone) as url:
        recogniser = ServerRecogniser(f"vosk:{url}", Backoff(0.01, 60, 3600), news.append)
        threading.Timer(1.5, recogniser.hurried.set).start()
        began = time.monotonic()
        items = list(transcribe(counted(2.0), recogniser))
    assert time.monotonic() - began < 5
    assert finals(items) == ["0 1 2"]
    assert isinstance(items[-1], Failure) and "the connection was lost" in items[-1].message


def test_news_of_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line when it stays away, and one when it is back; none for a connection that can be opened again at once."""
    news: list[str] = []
    with serving(vosk(dies_at=3), vosk()) as url:
        list(transcribe(counted(2.0), ServerRecogniser(f"vosk:{url}", QUICK, news.append)))
    assert not news
    connect, refusals = ServerRecogniser._connect, [InputError("the recogniser cannot be reached")] * 3

    def refusing(server: ServerRecogniser) -> None:
        if news_expected and refusals:
            raise refusals.pop()
        connect(server)

    news_expected = False
    monkeypatch.setattr(ServerRecogniser, "_connect", refusing)
    with serving(vosk(dies_at=3), vosk()) as url:
        recogniser = ServerRecogniser(f"vosk:{url}", QUICK, news.append)
        news_expected = True
        items = list(transcribe(counted(2.0), recogniser))
    assert [each.split(" ")[1] for each in news] == ["connection", "recogniser"] and "is back" in news[1]
    assert not [each for each in items if isinstance(each, Failure)]


def test_server_announces_its_end() -> None:
    with serving(broadcasting('{"text": "A", "segment": 0}', "Done!", dies=False)) as url:
        assert finals(list(ServerRecogniser(f"sherpa:{url}", QUICK).overhear())) == ["A"]
