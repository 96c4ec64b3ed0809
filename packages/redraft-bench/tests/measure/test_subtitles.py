"""Figures of subtitles: what is too fast, too wide or late."""

from __future__ import annotations

from itertools import pairwise

import pytest

from redraft.captions.formats.cues import PROFILES
from redraft_bench.pages.checks import WRITERS, subtitles
from redraft_bench.scripts.subtitles import Spoken, _timed, figures, ours

SPOKEN = [
    Spoken(1.0, 3.0, "Wir sahen sie."),
    Spoken(4.0, 5.0, "Sie duckte sich unter den Tisch, und dann kam sie wieder."),
]
SRT = """1
00:00:01,000 --> 00:00:03,000
Wir sahen sie.

2
00:00:05,000 --> 00:00:06,000
Sie duckte sich unter den Tisch, und dann kam
sie wieder.
"""


def test_figures() -> None:
    found = figures(SRT, SPOKEN, "de", PROFILES["web"])
    assert (found["cues"], found["fast"], found["wide"], found["tall"]) == (2, 0.5, 0.5, 0)
    assert (found["shortest"], found["longest"], found["overlaps"]) == (1, 2, 0)
    assert found["late_p50"] == pytest.approx(0.5)
    assert found["needed"] == pytest.approx(sum(len(line) for line in SRT.split("\n") if "s" in line) / 17 / 4)
    overlapping = SRT.replace("00:00:03,000", "00:00:05,500")
    assert figures(overlapping, SPOKEN, "de", PROFILES["web"])["overlaps"] == 1
    with pytest.raises(ValueError, match="other words"):
        figures(SRT.replace("wieder", ""), SPOKEN, "de", PROFILES["web"])


def test_of_our_own() -> None:
    found = figures(ours(SPOKEN, "de", PROFILES["web"]), SPOKEN, "de", PROFILES["web"])
    assert (found["wide"], found["tall"], found["overlaps"]) == (0, 0, 0)


def test_words_have_times() -> None:
    words = list(_timed(Spoken(1.0, 3.0, "da da  犬が")))
    assert "".join(each["word"] for each in words) == "da da  犬が"
    assert words[0]["start"] == 1 and words[-1]["end"] == pytest.approx(3)
    assert all(one["end"] == other["start"] for one, other in pairwise(words))


def test_sentence() -> None:
    rows = [
        {"writer": writer, "needed": needed, "fast": 0.25 * place, "wide": 0.5 * place, "late_p95": 1.0}
        for needed in (0.5, 1.5)
        for place, writer in enumerate(WRITERS)
    ]
    assert subtitles(rows).startswith(
        "Where the words can be read in the time of the talk, 0% of Redraft's cues are too fast; of Whisper's, 25%, "
    )
    assert "In 1 of the 2 rows, reading takes 1.5 times" in subtitles(rows)
