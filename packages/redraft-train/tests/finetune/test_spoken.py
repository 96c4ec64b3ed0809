"""English as recognisers write it."""

from __future__ import annotations

import random

from redraft_train.spoken import as_recognised, as_spoken


def test_spoken_sources() -> None:
    assert as_spoken("Tonight, I'm late. We know Tom!") == "tonight I'm late we know Tom"
    assert as_spoken("I saw 7:15 on it.") == "I saw 7:15 on it"
    assert as_spoken("...") == "..."


def test_recognisers_style() -> None:
    generator = random.Random(0)
    written = {as_recognised("Tom, I like it.", generator) for _ in range(300)}
    assert {"tom I like it", "tom i like it"} <= written
    assert any(text.startswith("uh ") or " um " in text for text in written)
    assert "tom tom I like it" in written
    assert not any(set(text) & set(".,") for text in written)
