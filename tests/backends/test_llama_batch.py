"""Batches that llama.cpp gets in one call."""

from __future__ import annotations

from redraft.backends.llama_context import Batch, Feed


def feed() -> Feed:
    """Two requests: one with the last of its rows wanted, one with a branch."""
    made = Feed()
    made.add((11, 12, 13), range(4, 7), [[0]] * 3, 1)
    made.add((21, 22, 23), [9, 10, 10], [[1, 2], [1], [2]], 3)
    return made


def test_of_each_request_last_rows_are_wanted() -> None:
    made = feed()
    assert made.wanted == [False, False, True, True, True, True]
    assert (len(made), made.rows) == (6, 4)


def test_parts_are_whole_in_its_order() -> None:
    made = feed()
    parts = list(made.parts(4))
    assert [len(part) for part in parts] == [4, 2]
    assert [part.rows for part in parts] == [2, 2]
    for name in ("tokens", "positions", "sequences", "wanted"):
        assert [each for part in parts for each in getattr(part, name)] == getattr(made, name)


def test_feed_of_engine() -> None:
    batch = Batch(8, 2)
    batch.filled(feed())
    short = Feed()
    short.add((31,), (3,), [[1]], 1)
    for each in (feed(), short):
        given = batch.filled(each)
        size = given.n_tokens
        assert size == len(each)
        assert given.token[:size] == each.tokens
        assert given.pos[:size] == each.positions
        assert [bool(wanted) for wanted in given.logits[:size]] == each.wanted
        assert [given.seq_id[at][: given.n_seq_id[at]] for at in range(size)] == each.sequences
    batch.close()
