"""A session is sent audio of any kind, and answers or closes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from tests.serve.hearing import pcm
from tests.serve.servers import Running
from tests.serve.sessions.audio.heard import errors, hearing


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with hearing() as found:
        yield found


wanted = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["audio", "audio", "audio_end"]),
        "stream": st.sampled_from(["1", "2", "", "\n", "x" * 60]),
    },
    optional={
        "rate": st.sampled_from([16_000, 8_000, None]),
        "time": st.floats(),
        "samples": st.integers(-1, 2**54),
        "utterance": st.integers(-1, 2**54),
    },
)
audio = st.one_of(wanted.map(json.dumps), st.just(pcm(0.6)), st.binary(max_size=60), st.just('{"type": "audio_end"}'))


@pytest.mark.fuzz
@pytest.mark.slow
@settings(max_examples=settings().max_examples // 2)
@given(st.lists(audio, min_size=1, max_size=15))
def test_fuzz_audio(server: Running, sent: list[str | bytes]) -> None:
    with server.socket() as socket:
        socket.start("de")
        with suppress(ConnectionClosed):
            for frame in sent:
                socket.connection.send(frame)
            socket.say("end")
            heard = socket.until("done")
            assert all(0 < len(sentence) <= 300 for sentence in errors(heard))
    assert socket.connection.close_code in (1000, 1002)
    assert server.hub.engines.alive
