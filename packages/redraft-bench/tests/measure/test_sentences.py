"""The benchmark `sentences`: how a talk is cut into utterances, and what is translated of them."""

from __future__ import annotations

from itertools import accumulate

from redraft_bench.scripts.sentences import as_stream, captioned, utterances

#: Words of a quarter of a second, and the pause after each in seconds.
SPOKEN = [*[("w", 0.0)] * 9, ("end.", 0.75), *[("x", 0.0)] * 39, ("long,", 0.25), *[("y", 0.0)] * 79, ("last.", 0.0)]


def timed() -> list[tuple[str, float, float]]:
    starts = accumulate((0.25 + pause for _, pause in SPOKEN), initial=1.0)
    return [(word, start, start + 0.25) for (word, _), start in zip(SPOKEN, starts, strict=False)]


def test_utterances() -> None:
    finals = [each.update for each in utterances(timed()) if each.update and each.update.final]
    assert [len(final.text.split()) for final in finals] == [10, 40, 60, 20]  # a pause, half of one, 15 seconds
    assert " ".join(final.text for final in finals) == " ".join(word for word, _ in SPOKEN)


def test_times_are_those_of_arrival() -> None:
    recognised = list(utterances(timed()))
    for sentences in (False, True):
        times = [update.time or 0.0 for update in captioned(recognised, sentences=sentences)]
        assert times == sorted(times)
        words = [segment.source for segment in as_stream("talk", {"talk": recognised}, sentences=sentences).segments]
        assert " ".join(words).split() == [word for word, _ in SPOKEN]
