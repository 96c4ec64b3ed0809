"""Continuous decoding keeps the whole draft."""

from __future__ import annotations

from redraft.decoding.methods.ssbd import Biased
from redraft.decoding.types import Draft, Provenance, Score, Verdict
from tests.fakes import RandomModel


def test_first_children_are_kept() -> None:
    draft, model = Draft((2, 3, 4, 5), (-1, -1, 0, 0), (Provenance.PREVIOUS,) * 4), RandomModel(1)
    (rows,) = model.score([(0, Score((1,), draft))])
    assert Biased(1.0).judge(draft, rows) == Verdict((0, 2), rows.argmax(2))
    assert Biased(1.0).biases(draft) == (1.0,) * 4
