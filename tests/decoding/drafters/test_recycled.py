"""The table of successors."""

from __future__ import annotations

from redraft.decoding.drafters import recycled
from redraft.decoding.drafters.recycled import Successors
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from tests.fakes import RandomModel


def learn(table: Successors, model: RandomModel, prefix: tuple[int, ...], draft: Draft) -> dict[int, int]:
    rows = model.score([(0, Score(prefix, draft))])[0]
    table.learn(prefix, draft, rows)
    return {node: rows.argmax(node) for node in range(ROOT, len(draft))}


def test_every_row_is_learnt_refused_branches_too() -> None:
    model, table = RandomModel(3), Successors()
    draft = Draft((4, 5, 6), (ROOT, 0, ROOT), (Provenance.RECYCLED,) * 3)
    best = learn(table, model, (1, 2, 3), draft)
    assert table.after((1, 2, 3)) == ((best[ROOT],), 3)
    assert table.after((9, 3, 4)) == ((best[0],), 2)
    assert table.after((3, 4, 5)) == ((best[1],), 3)
    assert table.after((2, 3, 6)) == ((best[2],), 3)
    assert table.after((7,)) == ((), 0)


def test_latest_comes_first_and_none_twice() -> None:
    table = Successors()
    for best in (1, 2, 3, 1, 4):
        table._enter((9,), best)
    assert table.after((9,)) == ((4, 1, 3), 1)
    for best in (1, 2, 1):
        table._enter((8,), best)
    assert table.after((8,)) == ((1, 2), 1)


def test_oldest_keys_go(monkeypatch) -> None:
    monkeypatch.setattr(recycled, "CAPACITY", 5)
    table, model = Successors(), RandomModel(0)
    for token in range(1, 10):
        learn(table, model, (token,), Draft())
    assert table.after((1,)) == ((), 0)
    assert table.after((9,))[1] == 1
