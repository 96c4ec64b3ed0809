"""A stream of audio within a session: when what is recognised arrived."""

from __future__ import annotations

import pytest

from redraft.captions.events import Update
from redraft.serve import protocol
from redraft.serve.audio import stream as module
from redraft.serve.audio.stream import AudioStream
from redraft.speech.audio import RATE


def test_arrival_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    stream = AudioStream.wanted(protocol.Audio(stream="1"))
    for now[0] in (1.0, 2.0, 3.0):
        stream.feed(RATE)
    now[0] = 9.0
    assert stream.arrival(Update("1", 0, "we", time=0.2), recognised=2 * RATE) == 2.0  # its time is where it starts
    assert stream.arrival(Update("1", 1, "we saw", time=0.9), recognised=3 * RATE) == 1.0
    assert stream.arrival(Update("1", 2, "we saw her", True, time=2.5), recognised=3 * RATE) == 3.0
    assert stream.arrival(Update("2", 1, "duck", time=4.0), recognised=3 * RATE) == 9.0
    stream.remember(stream.heard(Update("1", 1, "we saw", time=0.9)), 0)
    assert stream.arrival(Update("1", 2, "We saw.", True, time=0.9), recognised=3 * RATE) == 9.0  # no new words
    for now[0] in range(10, 400):
        for _ in range(100):
            stream.feed(1)
    assert len(stream.arrivals) <= 125  # frames that come together count once, and old ones are forgotten
