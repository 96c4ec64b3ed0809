"""Warnings: captions are far behind live speech, or nothing is recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from redraft.captions.events import Caption, Failure, Update
from redraft.captions.formats.read import Item
from redraft.speech.audio import RATE, Samples
from redraft.speech.delay import Watch


class Talk:
    """A live source of blocks of a second each, read when the recogniser is ready; none before they are spoken."""

    def __init__(self, speed: float = 1.0) -> None:
        self.now, self.spoken, self.speed, self.dropped = 100.0, 100.0, speed, 0.0
        self.warnings: list[str] = []
        self.watch = Watch(self.warnings.append, live=True, speed=speed, clock=lambda: self.now)
        self.blocks = self.watch.blocks(self._blocks(), lambda: self.dropped)

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
            list(self.watch.recognised([Update("1", 0, "words")]))

    def caption(self, end: float) -> None:
        list(self.watch.recognised([Update("1", 1, "", time=end)]))
        self.translate(end)

    def translate(self, end: float) -> None:
        self.watch.check(Caption("1", 1, "de", "", time=end))


def test_recogniser_keeps_up() -> None:
    talk = Talk()
    talk.recognise(60, 0.9)
    assert talk.watch.behind(60) == pytest.approx(0.9)
    talk.caption(60)
    assert talk.warnings == []


def test_slow_recogniser() -> None:
    talk = Talk()
    talk.recognise(10, 2.0)
    assert talk.watch.behind(10) == pytest.approx(11)
    for _ in range(3):  # once
        talk.caption(10)
    assert talk.warnings == [
        "the recogniser is 11 s behind the speech: choose a smaller model or a machine with more cores"
    ]
    talk.recognise(15, 2.0)
    talk.caption(25)  # and again when it has doubled
    assert talk.warnings[1].startswith("the recogniser is 26 s behind")
    talk.recognise(30, 0.0)
    talk.caption(55)
    talk.recognise(8, 2.0)
    talk.caption(63)
    assert len(talk.warnings) == 3  # a second time after it had caught up


def test_slow_translation() -> None:
    talk = Talk()
    talk.recognise(11, 0.1)
    talk.caption(11)
    talk.recognise(9, 0.1)
    talk.translate(11)
    assert talk.warnings == [
        "captions are 9 s behind the speech: choose fewer languages, a smaller model, or a machine with more cores"
    ]


def test_first_caption_may_be_late_and_failures_are_not() -> None:
    talk = Talk()
    talk.recognise(20, 0.1)
    talk.watch.check(Failure("something"))
    assert talk.warnings == []
    talk.caption(1)
    assert len(talk.warnings) == 1


def test_playback_speed() -> None:
    talk = Talk(speed=2.0)
    talk.recognise(40, 0.4)
    assert talk.watch.behind(40) == pytest.approx(0.4)


def test_pauses_and_dropped_audio() -> None:
    talk = Talk()
    talk.recognise(5, 0.1)
    talk.spoken += 20  # the source pauses, as a pipe can
    talk.recognise(2, 0.1)
    assert talk.watch.behind(7) == pytest.approx(0.1)
    talk.spoken += 0.5
    talk.dropped += 0.5
    talk.recognise(2, 0.1)
    assert talk.watch.behind(9) == pytest.approx(0.1)


def test_recordings_are_never_late() -> None:
    watch = Watch(pytest.fail, live=False)
    next(watch.blocks(iter([np.zeros(RATE, np.float32)])))
    watch.check(Caption("1", 3, "de", "", time=1.0))


def warnings(seconds: int, *, live: bool, words: Sequence[int] = (), fails: bool = False) -> list[str]:
    """The warnings about audio with words in some of its seconds, as far as their colon."""
    found: list[str] = []
    watch = Watch(found.append, live=live)

    def items() -> Iterator[Item]:
        for second, _ in enumerate(watch.blocks(iter([np.zeros(RATE, np.float32)] * seconds))):
            if second in words:
                yield Update(str(second), 0, "yes", time=float(second))
        if fails:
            yield Failure("the recogniser stopped")

    assert sum(isinstance(item, Update) for item in watch.recognised(items())) == len(words)
    return [each.partition(":")[0] for each in found]


@pytest.mark.parametrize("live", [True, False])
def test_words_are_recognised(live: bool) -> None:
    assert warnings(20, live=live, words=[3]) == []


def test_no_words() -> None:
    minutes = [f"no words were recognised for {each} s" for each in (30, 60, 120, 240, 480)]
    assert warnings(600, live=True) == minutes
    assert warnings(600, live=False) == warnings(10, live=True) == ["no speech was recognised"]


def test_words_end_silence() -> None:
    assert warnings(75, live=True, words=[20]) == ["no words were recognised for 30 s"]
    assert warnings(75, live=False, words=[20]) == []


def test_failure_is_warning_enough() -> None:
    assert warnings(5, live=False, fails=True) == []


def test_connection_that_was_away() -> None:
    """What was spoken before it was back is late because of that, which was said; what came after that is reported."""
    talk = Talk()
    talk.recognise(10, 0.0)
    talk.now += 20  # away
    talk.watch.news("it is back")
    talk.recognise(20, 0.0)
    for end in (10, 20, 29):
        talk.caption(end)
    assert talk.warnings == ["it is back"]
    talk.now += 30
    talk.watch.remedy = "look at its server"
    talk.recognise(30, 0.0)
    talk.caption(60)
    talk.now += 15
    talk.translate(60)
    assert talk.warnings[1:] and "is back" not in talk.warnings[-1]


def test_no_words_while_recogniser_is_away() -> None:
    warnings: list[str] = []
    watch = Watch(warnings.append, live=True)
    loud = np.tile(np.array([0.5, -0.5], np.float32), RATE // 2)
    for number, _ in enumerate(watch.blocks(iter([loud] * 50))):
        if number == 25:
            watch.news("it is back")
    assert warnings == ["it is back"]
