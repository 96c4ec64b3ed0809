"""Scripts of talks: their pace, their start, and repetition under new names."""

from __future__ import annotations

from itertools import islice, takewhile

import pytest

from redraft.captions.events import Update
from redraft_bench.eval.delays import words
from redraft_bench.eval.stream import Segment, Stream
from redraft_bench.loadtest.script import Script, open_script


@pytest.mark.parametrize("rate", [2.5, 5.0])
def test_talk_is_spoken_at_rate_in_its_own_rhythm(rate: float) -> None:
    script = open_script("talk", "de", rate)
    minute = [*takewhile(lambda said: said[0] < 600, script.spoken(3))]
    said = sum(words(update.text) for _, update in minute if update.final)
    assert said / 600 == pytest.approx(rate, rel=0.05)
    seconds = [second for second, _ in minute]
    assert seconds == sorted(seconds) and 0 < seconds[0] < 5


def test_it_goes_on_from_beginning_under_new_names() -> None:
    script = open_script("talk", "de", 2.5)
    segments = script.stream.segments
    updates = [update for _, update in islice(script.spoken(len(segments) - 1), 40)]
    assert updates[0].text == segments[-1].updates[0].text
    assert next(update for update in updates if update.utterance == "1").text == segments[0].updates[0].text
    finals = [update.utterance for update in updates if update.final]
    assert finals == [str(number) for number in range(len(finals))] and len(finals) > 3


def test_updates_without_times() -> None:
    updates = (Update("a", 0, "one two"), Update("a", 1, "one two three", final=True))
    script = Script(Stream("own", (Segment(updates),)), 2.0)
    assert [(second, update.seq) for second, update in islice(script.spoken(), 4)] == [
        (1.0, 0),
        (1.5, 1),
        (2.5, 0),
        (3.0, 1),
    ]
