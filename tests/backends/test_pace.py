"""How many languages keep up on this machine: the same figure for admission and for users."""

from __future__ import annotations

import pytest

from redraft.backends.costs import UPDATES_A_SECOND, busy_share, languages_in_time, pace, update_seconds
from redraft.decoding.backend import CostCurve

#: A model of 1.5 billion parameters on one core, and a small one.
SLOW = CostCurve((1, 2, 16, 64), (0.11, 0.125, 0.25, 0.7))
QUICK = CostCurve((1, 16, 64), (0.01, 0.02, 0.05))


def test_slow_model() -> None:
    assert languages_in_time(SLOW) == 1
    assert 1 / update_seconds(SLOW) == pytest.approx(1.31, abs=0.05)
    assert pace(SLOW, 3) == (
        "this model translates about 1.3 updates a second here, enough for live speech in 1 language, but "
        "not in 3: try fewer languages, a smaller model, a GPU or more cores"
    )
    assert "enough for live speech in 1 language; for more, use a smaller model" in pace(SLOW)
    assert pace(SLOW, 1).endswith("enough for live speech in 1 language")


def test_too_slow_for_one_language() -> None:
    assert languages_in_time(SLOW, drafts=False) == 0
    for wanted in (None, 1, 3):
        assert "too few for live speech" in pace(SLOW, wanted, drafts=False)


def test_quick_model() -> None:
    assert pace(QUICK, 3).endswith("enough for live speech in 3 languages")
    most = languages_in_time(QUICK)
    assert busy_share(QUICK, most) <= 1 < busy_share(QUICK, most + 1)
    assert f"enough for live speech in {most} languages; for more, use" in pace(QUICK)


def test_any_number_of_languages() -> None:
    instant = CostCurve((1, 2), (1e-9, 1e-9))
    assert languages_in_time(instant) == 64
    for wanted in (None, 1, 64, 100):
        assert "enough" in pace(instant, wanted) and "use" not in pace(instant, wanted)


def test_share_of_time() -> None:
    assert busy_share(QUICK) == UPDATES_A_SECOND * update_seconds(QUICK)
    assert update_seconds(QUICK, drafts=False) == pytest.approx(QUICK(8) + 15 * QUICK(1))
