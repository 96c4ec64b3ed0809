"""Batches that llama.cpp gets in one call."""

from __future__ import annotations

from redraft.backends.llama_context import Batch, Feed, feed_of, rows_in


def feed() -> Feed:
    """Two requests: one with the last of its rows wanted, one with a branch."""
    return feed_of((11, 12, 13), range(4, 7), [[0]] * 3, 1) + feed_of((21, 22, 23), [9, 10, 10], [[1, 2], [1], [2]], 3)


def test_of_each_request_last_rows_are_wanted() -> None:
    assert [each.wanted for each in feed()] == [False, False, True, True, True, True]
    assert rows_in(feed()) == 4


def test_feed_of_engine() -> None:
    batch = Batch(8, 2)
    batch.filled(feed())
    for each in (feed(), feed_of((31,), (3,), [[1]], 1)):
        given = batch.filled(each)
        size = given.n_tokens
        assert size == len(each)
        found = zip(given.token[:size], given.pos[:size], given.logits[:size], strict=True)
        assert [*found] == [(one.token, one.position, one.wanted) for one in each]
        assert [given.seq_id[at][: given.n_seq_id[at]] for at in range(size)] == [one.sequences for one in each]
    batch.close()
