"""How far captions are behind live speech."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from redraft.captions.events import Caption, Failure, Update
from redraft.speech.audio import RATE, Samples
from redraft.speech.lag import Lag


class Talk:
    """A live source of blocks of a second each, read when the recogniser is ready; none before they are spoken."""

    def __init__(self, speed: float = 1.0) -> None:
        self.now, self.spoken, self.speed, self.dropped = 100.0, 100.0, speed, 0.0
        self.said: list[str] = []
        self.lag = Lag(self.said.append, speed, clock=lambda: self.now)
        self.blocks = self.lag.blocks(self._blocks(), lambda: self.dropped)

    def _blocks(self) -> Iterator[Samples | Failure]:
        while True:
            self.spoken += 1 / self.speed
            self.now = max(self.now, self.spoken)
            yield np.zeros(RATE, np.float32)

    def recognise(self, blocks: int, seconds: float) -> None:
        """Read so many blocks, each of which takes so long to recognise."""
        for _ in range(blocks):
            next(self.blocks)
            self.now += seconds

    def caption(self, end: float, *, seq: int = 1, final: bool = False) -> None:
        list(self.lag.recognised([Update("1", 1, "", time=end)]))
        self.translate(end, seq=seq, final=final)

    def translate(self, end: float, *, seq: int = 1, final: bool = False) -> None:
        self.lag.check(Caption("1", seq, "de", "", final=final, time=end))


def test_recogniser_keeps_up() -> None:
    talk = Talk()
    talk.recognise(60, 0.9)
    assert talk.lag.behind(60) == pytest.approx(0.9)
    talk.caption(60)
    assert talk.said == []


def test_slow_recogniser() -> None:
    talk = Talk()
    talk.recognise(10, 2.0)
    assert talk.lag.behind(10) == pytest.approx(11)
    for _ in range(3):  # once
        talk.caption(10)
    assert talk.said == [
        "the recogniser is 11 s behind the speech: choose a smaller model or a machine with more cores"
    ]
    talk.recognise(15, 2.0)
    talk.caption(25, final=True)  # and again when it has doubled
    assert talk.said[1].startswith("the recogniser is 26 s behind")
    talk.recognise(30, 0.0)
    talk.caption(55)
    talk.recognise(8, 2.0)
    talk.caption(63)
    assert len(talk.said) == 3  # a second time after it had caught up


def test_slow_translation() -> None:
    talk = Talk()
    talk.recognise(11, 0.1)
    talk.caption(11)
    talk.recognise(9, 0.1)
    talk.translate(11)
    assert talk.said == [
        "captions are 9 s behind the speech: choose fewer languages, a smaller model, or a machine with more cores"
    ]


def test_first_captions_and_failures_have_no_lag() -> None:
    talk = Talk()
    talk.recognise(20, 0.1)
    talk.caption(1, seq=0)
    talk.lag.check(Failure("something"))
    assert talk.said == []
    talk.caption(1, seq=0, final=True)
    assert len(talk.said) == 1


def test_playback_speed() -> None:
    talk = Talk(speed=2.0)
    talk.recognise(40, 0.4)
    assert talk.lag.behind(40) == pytest.approx(0.4)


def test_pauses_and_dropped_audio() -> None:
    talk = Talk()
    talk.recognise(5, 0.1)
    talk.spoken += 20  # the source pauses, as a pipe can
    talk.recognise(2, 0.1)
    assert talk.lag.behind(7) == pytest.approx(0.1)
    talk.spoken += 0.5
    talk.dropped += 0.5
    talk.recognise(2, 0.1)
    assert talk.lag.behind(9) == pytest.approx(0.1)


def test_recordings_have_no_lag() -> None:
    lag = Lag(pytest.fail)
    lag.check(Caption("1", 3, "de", "", time=1.0))
