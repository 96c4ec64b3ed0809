"""A talk replayed by a clock that counts computing time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Caption, Event, Update
from redraft_bench.eval.stream import Segment, Stream
from redraft_bench.scripts.live import figures, records, replay


class Slow:
    """Translates in a time of its own choice, and shows the source."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0
        self.seen: list[Update] = []

    def clock(self) -> float:
        return self.now

    def translate(self, update: Update) -> list[Event]:
        self.now += self.seconds
        self.seen.append(update)
        return [Caption(update.utterance, update.seq, "de", update.text, "", update.final, update.time, update.text)]


def talk(utterances: int, updates: int, gap: float) -> list[Update]:
    """Utterances of as many updates, each a word longer than the last, ``gap`` seconds apart."""
    return [
        Update(str(number), seq, "so " * (seq + 1), final=seq == updates - 1, time=gap * (number * updates + seq))
        for number in range(utterances)
        for seq in range(updates)
    ]


#: Times that binary fractions hold.
QUARTERS = st.integers(1, 16).map(lambda number: number / 4)


@given(st.integers(1, 5), st.integers(1, 8), QUARTERS, QUARTERS)
def test_finals_are_all_translated_and_partials_are_bounded(
    utterances: int, updates: int, gap: float, seconds: float
) -> None:
    model, sent = Slow(seconds), talk(utterances, updates, gap)
    answers, passed_over = replay(sent, model.translate, model.clock)
    assert len(answers) + passed_over == len(sent)
    assert [each for each in model.seen if each.final] == [each for each in sent if each.final]
    order = {(each.utterance, each.seq): place for place, each in enumerate(sent)}
    places = [order[each.utterance, each.seq] for each in model.seen]
    assert places == sorted(places)
    assert all(later.time >= earlier.time + seconds for earlier, later in pairwise(answers))
    for each in answers:
        assert each.time >= each.update.time + seconds  # type: ignore[operator]
    if seconds < gap:
        assert not passed_over


def test_figures_count_computing_time() -> None:
    sent = talk(1, 4, 1.0)
    stream = Stream("so", (Segment(tuple(sent)),))
    for seconds, lag, passed_over in ((0.25, 0.25, 0), (1.5, 1.5, 1)):
        model = Slow(seconds)
        answers, skipped = replay(sent, model.translate, model.clock)
        row = figures(answers, skipped, stream, ["de"])
        assert (row["answer_first"], skipped) == (lag, passed_over)
        shown = records(answers, stream, "de")[0]
        assert shown.steps[-1].final and shown.steps[-1].text == sent[-1].text
        assert row["retracted"] == 0 and row["lag_first"] >= seconds - 1e-9  # type: ignore[operator]
        assert row["passed_over"] == pytest.approx(passed_over / 4)
