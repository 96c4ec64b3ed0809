"""Lags of captions: from the oldest word that nothing covered, and from the update that is answered."""

from __future__ import annotations

from redraft.captions.events import Caption, Failure, Update
from redraft_bench.loadtest.hearing import Hearing, Lag


def caption(utterance: str, seq: int, text: str = "", final: bool = False) -> Caption:
    return Caption(utterance, seq, "de", text, final=final)


def test_caption_covers_its_update_and_all_before_it() -> None:
    hearing = Hearing()
    for seq, due in enumerate((1.0, 2.0, 4.0, 5.0)):
        hearing.sent(Update("1", seq, "a"), due)
    hearing.received(caption("1", 0), 1.5)
    hearing.received(caption("1", 2), 5.5)
    hearing.received(caption("1", 3), 6.0)
    assert hearing.lags == [Lag(1.0, 0.5, 0.5), Lag(2.0, 3.5, 1.5), Lag(5.0, 1.0, 1.0)]
    assert (hearing.updates, hearing.captions, hearing.passed_over, hearing.unanswered) == (4, 3, 1, 0)


def test_utterances_are_apart_and_what_comes_twice_counts_once() -> None:
    hearing = Hearing()
    hearing.sent(Update("1", 0, "a"), 1.0)
    hearing.sent(Update("2", 0, "a"), 2.0)
    hearing.received(caption("2", 0), 3.0)
    hearing.received(caption("2", 0), 9.0)
    hearing.received(caption("1", 0), 4.0)
    assert hearing.lags == [Lag(2.0, 1.0, 1.0), Lag(1.0, 3.0, 3.0)]


def test_what_never_came_lags_until_end() -> None:
    hearing = Hearing()
    for seq in range(3):
        hearing.sent(Update("1", seq, "a"), 1.0 + seq)
    hearing.received(caption("1", 0), 2.0)
    hearing.received(Failure("no", None, "1", 1, "de"), 2.5)
    hearing.close(10.0)
    assert hearing.lags == [Lag(1.0, 1.0, 1.0), Lag(2.0, 8.0, None)]
    assert (hearing.unanswered, hearing.failures, hearing.captions) == (2, 1, 1)


def test_words_taken_back_are_counted() -> None:
    hearing = Hearing()
    hearing.received(caption("1", 0, "I saw her"), 0.0)
    hearing.received(caption("1", 1, "I see them now", final=True), 0.0)
    assert (hearing.counts.erased, hearing.counts.shown) == (2, 4)
