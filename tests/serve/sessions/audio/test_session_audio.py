"""Audio over a session's websocket: recognition, refusals, and no loss after a drop."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from redraft import deadlines, protocol
from redraft.captions.events import Update
from redraft.serve.sessions import live
from redraft.serve.sessions import session_audio as module
from redraft.serve.sessions.live import FULL, NEARLY_FULL
from redraft.serve.sessions.session_audio import AudioStream
from redraft.speech.audio import RATE
from redraft.speech.buffer import AudioBuffer
from redraft.speech.process import RecogniserProcess
from tests.serve.hearing import SENTENCE, pcm
from tests.serve.servers import SECONDS, Running, Socket, running
from tests.serve.sessions.audio.heard import errors, hearing
from tests.serve.talking import expected, finals
from tests.waiting import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with hearing() as found:
        yield found


@contextmanager
def speaking(server: Running) -> Iterator[Socket]:
    """A session in German that has begun a stream of audio."""
    with server.socket() as socket:
        socket.start("de", method="ar")
        socket.say("audio", stream="1")
        yield socket


def send(socket: Socket, seconds: float, frame: float = 0.5) -> None:
    """Send so much audio."""
    for _ in range(round(seconds / frame)):
        socket.connection.send(pcm(frame))


def recognised(messages: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(each["utterance"], each["text"], each["final"]) for each in messages if each["type"] == "recognised"]


def until_listening(socket: Socket, going: bool) -> list[dict[str, Any]]:
    """All messages up to the one that says whether the server listens."""
    heard = socket.until("listening")
    while heard[-1]["listening"] is not going:
        heard += socket.until("listening")
    return heard


def until_error(socket: Socket) -> list[dict[str, Any]]:
    return socket.until("error")


def test_recognised_and_translated(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de", method="ar", source_language="en")
        socket.say("audio", stream="3", time=10.0)
        position = until_listening(socket, True)[-1]
        assert (position["stream"], position["received"], position["recognised"]) == ("3", 0, 0)
        send(socket, 3)
        socket.say("end")
        heard = socket.until("done")
        assert recognised(heard)[:4] == [
            ("3.1", "we", False),
            ("3.1", "we saw", False),
            ("3.1", "we saw her", False),
            ("3.1", SENTENCE, True),
        ]
        assert recognised(heard)[-1] == ("3.2", "we saw", True)
        assert finals(heard) == [("3.1", "de", expected(SENTENCE)), ("3.2", "de", expected("we saw"))]
        # Times are those of the audio, from the session's beginning.
        times = {each["utterance"]: (each["start"], each["time"]) for each in heard if each["type"] == "final"}
        assert times == {"3.1": (10.0, 12.0), "3.2": (12.0, 13.0)}
        over = [each for each in heard if each["type"] == "listening"][-1]
        assert (over["listening"], over["received"], over["recognised"]) == (False, 3 * RATE, 3 * RATE)
    assert server.hub.recognisers.taken == 0


@pytest.mark.parametrize(
    ("wanted", "ended"),
    [
        # The audio of a sentence that goes on is still needed.
        (None, [("We saw.", 0), ("A duck, We saw.", 2), ("A duck,", 4)]),
        (False, [("We saw. A duck,", 2), ("We saw. A duck,", 4)]),
    ],
)
def test_sentences(wanted: bool | None, ended: list[tuple[str, int]]) -> None:
    with hearing("--sentence", "We saw. A duck,") as server, server.socket() as socket:
        socket.start("de", method="ar", sentences=wanted)
        socket.say("audio", stream="1")
        send(socket, 4)
        socket.say("end")
        heard = [each for each in socket.until("done") if each["type"] == "recognised" and each["final"]]
        assert [(each["text"], each["recognised"] / RATE) for each in heard] == ended


def test_viewers_of_audio(server: Running) -> None:
    with server.socket() as socket:
        name = socket.start("de")["session"]
        with server.socket(f"/v1/watch/{name}") as viewer:
            socket.say("audio", stream="a")
            send(socket, 2)
            socket.say("end")
            assert {each["type"] for each in viewer.until("done")} <= {"partial", "final", "stats", "done"}


def test_text_and_audio_in_one_session(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de", method="ar")
        socket.say("audio", stream="a")
        send(socket, 1)
        socket.say("update", utterance="typed", seq=0, text="her duck", final=True)
        send(socket, 1)
        socket.say("end")
        assert {name for name, _, _ in finals(socket.until("done"))} == {"a.1", "typed"}


def test_audio_after_drop(server: Running) -> None:
    with server.socket() as socket:
        token = socket.start("de", method="ar")["token"]
        socket.say("audio", stream="1")
        send(socket, 3)
        heard = [socket.hear()]
        while not finals(heard) or ("1.2", "we saw", False) not in recognised(heard):
            heard.append(socket.hear())
    with server.socket() as socket:
        assert socket.start("de", method="ar", token=token)["resumed"] is True
        socket.say("audio", stream="1", samples=2 * RATE, utterance=2)
        heard = until_listening(socket, True)
        assert heard[-1]["received"] == 3 * RATE
        assert recognised(heard) == [("1.2", "we saw", False)]  # what may have been missed
        send(socket, 1)
        socket.say("end")
        heard = socket.until("done")
        assert finals(heard)[-1] == ("1.2", "de", expected(SENTENCE)) and errors(heard) == []


def test_lost_audio(server: Running) -> None:
    with speaking(server) as socket:
        send(socket, 1)
        socket.say("audio", stream="1", samples=6 * RATE)
        heard = until_error(socket)
        assert errors(heard) == ["5.0 seconds of audio were lost on the way"]
        send(socket, 2)
        socket.say("end")
        heard = socket.until("done")
        ends = [each["time"] for each in heard if each["type"] == "final"]
        # A second of silence stands for what is lost, and times after it count all of it.
        assert ends == [2.0, 8.0]


def test_audio_after_restart(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de", token="u" * 32)
        socket.say("audio", stream="1", samples=7 * RATE, utterance=4, time=1.0)
        assert until_listening(socket, True)[-1]["received"] == 7 * RATE
        send(socket, 2)
        socket.say("end")
        heard = socket.until("done")
        assert recognised(heard)[-1] == ("1.4", SENTENCE, True)
        assert next(each for each in heard if each["type"] == "final")["start"] == 8.0


def test_idle_after_drop(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "AUDIO", 0.2)
    with server.socket() as socket:
        token = socket.start("de", method="ar")["token"]
        socket.say("audio", stream="1")
        send(socket, 1)
        socket.until("recognised")
    eventually(lambda: server.hub.recognisers.taken == 0)
    with server.socket() as socket:
        socket.start("de", method="ar", token=token)
        assert finals(socket.until("final")) == [("1.1", "de", expected("we saw"))]
        # The same stream goes on with another recogniser.
        socket.say("audio", stream="1", samples=RATE, utterance=1)
        heard = until_listening(socket, True)
        assert recognised(heard) == [("1.1", "we saw", True)]
        send(socket, 2)
        socket.say("end")
        assert finals(socket.until("done"))[-1] == ("1.2", "de", expected(SENTENCE))


# What is refused


def test_no_recogniser() -> None:
    with running() as server, server.socket() as socket:
        assert "recogniser" not in server.ask("/v1/offer").json
        socket.start("de", method="ar")
        send(socket, 30)
        socket.say("update", utterance="1", seq=0, text="we saw", final=True)
        heard = socket.until("final")
        assert errors(heard) == [module.NO_RECOGNISER] and heard[0]["code"] == "audio"
        socket.say("audio", stream="1")
        refused = until_listening(socket, False) + until_error(socket)  # so nothing waits for it
        assert errors(refused) == [module.NO_RECOGNISER]
        socket.say("audio_end")
        socket.say("end")
        assert errors(socket.until("done")) == []


def test_offered_recogniser() -> None:
    for spec, name in (("sherpa:/srv/models/secret", "sherpa"), ("vosk:ws://10.0.0.1:2700", "vosk")):
        with running(recogniser=spec) as server:
            offer = server.ask("/v1/offer").json
            assert (offer["recogniser"], offer["audio_backlog"]) == (name, 30)


def test_invalid_audio_message(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de")
        socket.say("audio", stream="1", rate=44_100)
        assert socket.hear()["code"] == "protocol"
        send(socket, 1)
        assert errors([socket.hear()]) == [module.NO_STREAM]  # once
        socket.say("end")
        assert errors(socket.until("done")) == []


def test_invalid_frames(server: Running) -> None:
    frames = {
        bytes(3201): module.BAD_FRAME,
        b"RIFF\0\0\0\0WAVE" + bytes(3200): "audio must be raw 16-bit samples, not a file in WAV format",
        b"\x1aE\xdf\xa3" + bytes(3200): "audio must be raw 16-bit samples, not a file in WebM format",
        bytes(70_000): module.BAD_FRAME,
    }
    with speaking(server) as socket:
        for frame, sentence in frames.items():
            socket.connection.send(frame)
            error = until_error(socket)[-1]
            assert (error["message"], error["fatal"]) == (sentence, False)
        socket.connection.send(b"")
        send(socket, 2)
        socket.say("end")
        heard = socket.until("done")
        assert errors(heard) == [] and finals(heard)[0] == ("1.1", "de", expected(SENTENCE))


def test_second_stream(server: Running) -> None:
    with speaking(server) as socket:
        until_listening(socket, True)
        socket.say("audio", stream="2")  # whose beginning ends the first
        heard = until_listening(socket, False)
        assert until_listening(socket, True)[-1]["stream"] == "2"
        assert errors(heard) == []


def test_audio_of_later_streams(server: Running) -> None:
    """A client that waits for no answer loses nothing."""
    with speaking(server) as socket:
        send(socket, 2)
        for stream in ("2", "3"):
            socket.say("audio_end")
            socket.say("audio", stream=stream)
            send(socket, 2)
        socket.say("end")
        heard = socket.until("done")
        assert errors(heard) == []
        assert finals(heard) == [(f"{stream}.1", "de", expected(SENTENCE)) for stream in "123"]
        ended = [(each["stream"], each["received"]) for each in heard if each["type"] == "listening"][-1]
        assert ended == ("3", 2 * RATE)


def test_too_much_for_a_later_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "BACKLOG_SECONDS", 4)
    (slow := tmp_path / "slow").touch()
    with hearing("--slow", str(slow)) as server, speaking(server) as socket:
        send(socket, 2)
        socket.say("audio_end")
        socket.say("audio", stream="2")
        send(socket, 6)
        assert errors(until_error(socket)) == [module.FULL]  # once
        socket.say("audio_end")
        assert errors(until_error(socket)) == ["2.0 seconds of audio were dropped"]
        send(socket, 2)
        assert errors(until_error(socket)) == [module.NO_STREAM]  # once
        slow.unlink()
        socket.say("end")
        heard = socket.until("done")
        assert errors(heard) == []
        assert [name for name, _, _ in finals(heard)][:3] == ["1.1", "2.1", "2.2"]
        assert [each["received"] for each in heard if each["type"] == "listening"][-1] == 6 * RATE


def test_too_many_later_streams(server: Running) -> None:
    with speaking(server) as socket:
        for stream in range(2, 15):
            socket.say("audio_end")
            socket.say("audio", stream=str(stream))
        assert "may wait" in until_error(socket)[-1]["message"]
        socket.say("audio", stream="x")
        assert until_error(socket)[-1]["code"] == "audio"
        socket.say("end")
        socket.until("done")


def test_second_stream_has_the_place_of_the_first() -> None:
    with hearing(listeners=1) as server, speaking(server) as first, server.socket() as second:
        until_listening(first, True)
        second.start("de")
        first.say("audio_end")
        first.say("audio", stream="2")
        until_listening(first, False)
        assert until_listening(first, True)[-1]["stream"] == "2"
        second.say("audio", stream="1")
        assert until_error(second)[-1]["code"] == "capacity"
        assert 'redraft_refusals_total{code="capacity"} 1.0' in server.ask("/metrics").text


def test_limited_places() -> None:
    with hearing(listeners=1) as server, server.socket() as first, server.socket() as second:
        for socket in (first, second):
            socket.start("de")
            socket.say("audio", stream="1")
        until_listening(first, True)
        assert second.hear()["listening"] is False
        refused = second.hear()
        assert (refused["code"], refused["fatal"]) == ("capacity", False)
        assert "redraft_listening 1.0" in server.ask("/metrics").text
        first.say("audio_end")
        until_listening(first, False)
        second.say("audio", stream="1")
        until_listening(second, True)


def test_too_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKLOG_SECONDS", 4)
    with hearing() as server, speaking(server) as socket:
        send(socket, 10, frame=1)
        assert until_error(socket)[-1]["code"] == "audio"
        socket.say("end")
        heard = socket.until("done")
        assert errors(heard) == ["6.0 seconds of audio were dropped"]
        assert [text for _, _, text in finals(heard)][:2] == [expected(SENTENCE)] * 2
        text = server.ask("/metrics").text
        assert "redraft_audio_seconds_total 10.0" in text and "redraft_lost_audio_seconds_total 6.0" in text


def test_slow_recogniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKLOG_SECONDS", 4)
    stuck = tmp_path / "stuck"
    stuck.touch()
    with hearing("--slow", str(stuck)) as server, speaking(server) as socket:
        until_listening(socket, True)
        began = time.monotonic()
        send(socket, 3.5)
        time.sleep(1)
        send(socket, 1.5)  # within what can have been spoken and the backlog, but nothing is recognised
        assert until_error(socket)[-1]["message"] == module.FULL
        stuck.unlink()
        while time.monotonic() - began < 2.6:
            time.sleep(0.05)
        position = socket.until("listening")[-1]
        while position["recognised"] < 3.5 * RATE:
            position = socket.until("listening")[-1]
        send(socket, 0.5)
        assert errors(until_error(socket))[0].endswith("seconds of audio were dropped")
        socket.say("end")
        times = [each["time"] for each in socket.until("done") if each["type"] == "final"]
        assert times == sorted(times) and times[-1] == 5.5  # all that was sent counts


def test_lag_of_slow_recogniser(tmp_path: Path) -> None:
    stuck = tmp_path / "stuck"
    stuck.touch()
    with hearing("--slow", str(stuck)) as server, speaking(server) as socket:
        until_listening(socket, True)
        send(socket, 4)
        while (position := socket.until("listening")[-1])["received"] < 4 * RATE:
            pass
        assert (position["listening"], position["recognised"]) == (True, 0)  # though the recogniser makes no progress
        time.sleep(0.5)
        stuck.unlink()
        socket.say("end")
        heard = socket.until("done")
    lags = [each["lag_ms"] for each in heard if each["type"] in ("partial", "final")]
    assert lags and min(lags) >= 500
    assert [each for each in heard if each["type"] == "stats"][-1]["lag_ms"] >= 500


AGAIN = "; it was started again, and no audio is lost"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--dies-after", "2.7"), "the recogniser stopped after 2.8 s of audio: RuntimeError: out of memory"),
        (("--crashes",), "the recogniser's process ended with signal SIGKILL"),
    ],
)
def test_recogniser_dies(options: tuple[str, ...], sentence: str) -> None:
    """Once, it is started again, and every word is there; if it soon dies again, the talk goes on without it."""
    with hearing(*options) as server, speaking(server) as socket:
        send(socket, 3.5)
        heard = until_error(socket)
        assert errors(heard) == [sentence + AGAIN]
        socket.say("audio_end")
        heard += until_listening(socket, False)
        ended = [text for _, text, final in recognised(heard) if final]
        assert sum(len(text.split()) for text in ended) == 7 and len(errors(heard)) == 1  # a word in every half second
        numbers = [(each["utterance"], each["seq"]) for each in heard if each["type"] == "recognised"]
        assert numbers == sorted(set(numbers))
    with hearing(*options) as server, speaking(server) as socket:
        send(socket, 8)
        heard = until_listening(socket, True) + until_listening(socket, False)
        assert errors(heard)[0] == sentence + AGAIN and errors(heard)[1].endswith("twice within 10 s of audio")
        send(socket, 1)  # what was under way
        socket.say("update", utterance="typed", seq=0, text="her duck", final=True)
        socket.say("end")
        heard += socket.until("done")
        # What was recognised until then is kept, and ended.
        words = [text for name, _, text in finals(heard) if name != "typed"]
        assert words[0] == expected(SENTENCE) and len(words) >= 2
        assert ("typed", "de", expected("her duck")) in finals(heard)
        assert len(errors(heard)) == 2 and server.hub.recognisers.taken == 0


def test_recogniser_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started again before audio is dropped, and no word is lost."""
    monkeypatch.setattr(deadlines, "STALLED_AT_SERVER", 1.5)
    stuck = tmp_path / "stuck"
    with hearing("--slow", str(stuck)) as server, speaking(server) as socket:
        send(socket, 1.5)
        socket.until("recognised")
        stuck.touch()
        send(socket, 4)
        heard = until_error(socket)
        assert errors(heard) == ["the recogniser did nothing for 1.5 s" + AGAIN]
        stuck.unlink()
        socket.say("audio_end")
        heard += until_listening(socket, False)
        ended = [text for _, text, final in recognised(heard) if final]
        assert " ".join(ended).split() == (SENTENCE.split() * 3)[:11] and len(errors(heard)) == 1


def test_drain_with_hanging_recogniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "STALLED_AT_SERVER", 0.5)
    stuck = tmp_path / "stuck"
    with hearing("--slow", str(stuck), drain_seconds=600) as server, speaking(server) as socket:
        stuck.touch()
        send(socket, 2)
        server.call(server.server.stop)
        while until_error(socket)[-1]["code"] != "draining":  # it is given up before
            pass
        eventually(lambda: not server.loop.is_running())


@pytest.mark.parametrize(("option", "why"), [("--babbles", "signal SIGKILL"), ("--unknown", "status 2")])
def test_recogniser_cannot_be_opened(option: str, why: str) -> None:
    with hearing(option) as server, speaking(server) as socket:
        send(socket, 1)
        heard = until_listening(socket, True) + until_listening(socket, False)
        assert errors(heard) == [f"the recogniser cannot be started: its process ended with {why}"]


def test_missing_command() -> None:
    with hearing() as server, server.socket() as socket:
        server.hub.recognisers.command = lambda language: ["/nothing/here"]
        socket.start("de")
        socket.say("audio", stream="1")
        (sentence,) = errors(until_listening(socket, True) + until_listening(socket, False))
        assert "cannot be started" in sentence


def test_utterance_name_taken(server: Running) -> None:
    with server.socket() as socket:
        socket.start("de", method="ar")
        socket.say("update", utterance="1.1", seq=0, text="her duck", final=True)
        socket.say("audio", stream="1")
        send(socket, 1)
        heard = until_listening(socket, True) + until_listening(socket, False)
        assert [each["code"] for each in heard if each["type"] == "error"] == ["stale"]


def test_full_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_CHARACTERS", 1000)
    with hearing() as server, speaking(server) as socket:
        send(socket, 25)
        heard = until_listening(socket, True) + until_listening(socket, False)
        assert errors(heard) == [NEARLY_FULL, FULL]


def test_hanging_recogniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started again once, and then given up, so that the session ends and its place is free."""
    monkeypatch.setattr(deadlines, "STALLED_AT_SERVER", 0.5)
    stuck = tmp_path / "stuck"
    stuck.touch()
    with hearing("--slow", str(stuck)) as server, speaking(server) as socket:
        send(socket, 1)
        socket.say("end")
        first, second = errors(socket.until("done"))
        assert first.endswith(AGAIN) and second.endswith("twice within 10 s of audio")
        assert server.hub.recognisers.taken == 0


def test_idle_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "AUDIO", 0.2)
    with hearing() as server, speaking(server) as socket:
        send(socket, 1)
        heard = until_listening(socket, True) + until_listening(socket, False)
        assert errors(heard) == [module.IDLE]
        assert recognised(heard)[-1] == ("1.1", "we saw", True)


def test_drain_with_audio(monkeypatch: pytest.MonkeyPatch) -> None:
    with hearing() as server, speaking(server) as socket:
        send(socket, 1)
        socket.until("recognised")
        server.call(server.server.stop)
        heard = socket.until("final")
        assert finals(heard) == [("1.1", "de", expected("we saw"))]


def test_ended_before_recogniser_starts() -> None:
    with hearing() as server, server.socket() as socket:
        session = server.hub.owned(socket.start("de")["token"])
        taken: list[int] = []

        def begin_and_end() -> None:
            audio = session.listen(server.hub.recognisers)
            audio.begin(protocol.Audio(stream="1"))
            taken.append(server.hub.recognisers.taken)
            audio.close()

        server.call(begin_and_end)
        eventually(lambda: taken == [1] and server.hub.recognisers.taken == 0)


def test_closed_while_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    with hearing() as server, server.socket() as socket:
        session = server.hub.owned(socket.start("de")["token"])
        socket.say("audio", stream="1")
        send(socket, 1)
        socket.until("recognised")
        audio = session.audio
        assert audio is not None and audio._stream is not None and audio._stream.process._process is not None
        process, waiting = audio._stream.process._process, threading.Event()

        async def room() -> None:
            waiting.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(audio, "_room", room)
        send(socket, 1)
        assert waiting.wait(SECONDS)

        async def end() -> int | None:
            audio.close()
            await asyncio.gather(*server.hub.recognisers._tasks, return_exceptions=True)
            return process.returncode

        assert asyncio.run_coroutine_threadsafe(end(), server.loop).result(SECONDS) == -signal.SIGKILL


@pytest.mark.slow
def test_minute_of_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    monkeypatch.setattr(module, "BACKLOG_SECONDS", 600)
    with running(recogniser="moonshine") as server, speaking(server) as socket:
        send(socket, 60, frame=2)
        socket.say("end")
        heard = socket.until("done")
        assert {each["type"] for each in heard} <= {"listening", "stats", "done"}
        assert [each["recognised"] for each in heard if each["type"] == "listening"][-1] == 60 * RATE


def test_arrival_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("redraft.serve.sessions.session_audio.monotonic", lambda: now[0])
    process = RecogniserProcess([])
    process.audio = AudioBuffer(clock=lambda: now[0])
    stream = AudioStream(protocol.Audio(stream="1"), process)
    for now[0] in (1.0, 2.0, 3.0):
        process.feed(pcm(1))
    now[0] = 9.0
    assert stream.arrival(Update("1", 0, "we", time=1.2, start=0.2), recognised=2 * RATE) == 2.0
    assert stream.arrival(Update("1", 1, "we saw", time=0.9), recognised=3 * RATE) == 1.0
    assert stream.arrival(Update("1", 2, "we saw her", True, time=2.5), recognised=3 * RATE) == 3.0
    assert stream.arrival(Update("2", 1, "duck", time=4.0), recognised=3 * RATE) == 9.0
    stream.remember(stream.named(Update("1", 1, "we saw", time=0.9)))
    assert stream.arrival(Update("1", 2, "We saw.", True, time=0.9), recognised=3 * RATE) == 9.0  # no new words
