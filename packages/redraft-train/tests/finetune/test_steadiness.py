"""Steadiness of a model that is a table, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from redraft.captions.events import Caption, Failure, Update
from redraft.errors import OptionError
from redraft_bench.eval.measure import Run
from redraft_bench.eval.record import Step
from redraft_train import steadiness as measuring
from redraft_train.steadiness import Steadiness, steadiness


class Parrot:
    """Says what it is given, by ``say``; a token is a word."""

    caption: Caption | None = None

    def __init__(self, say: Callable[[str], str]) -> None:
        self.say, self.closed, self._ids = say, False, dict[str, int]()

    def translate(self, update: Update) -> tuple[Step, list[Failure]]:
        text = self.say(update.text)
        step = Step(update.seq, update.text, update.final, None, 1, (), text, "", True, 0.0, 0.0, ())
        return step, []

    def tokenize(self, text: str) -> list[int]:
        return [self._ids.setdefault(word, len(self._ids)) for word in text.split()]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch):
    def run(say: Callable[[str], str], *more: object) -> Steadiness:
        parrot = Parrot(say)

        def opened(_backend, contenders, *, style):
            assert [(each.method, each.language) for each in contenders] == [("ar", "de")]
            return [Run(contenders[0], parrot)]

        monkeypatch.setattr(measuring, "open_runs", opened)
        found = steadiness(None, "de", *more)  # type: ignore[arg-type]
        assert parrot.closed
        return found

    return run


SOURCES = ["a b c d e f g", "h i"]  # revealed as 3, 6 and 7 words, and as 2


def test_model_that_keeps_pace_erases_nothing(measured) -> None:
    found = measured(str, SOURCES, SOURCES)
    assert (found.sentences, found.ne, found.chrf, found.length) == (2, 0, pytest.approx(100), pytest.approx(1))
    assert measured(str, SOURCES).chrf is None


def test_holding_back_and_guessing(measured) -> None:
    held = measured(lambda text: " ".join(text.split()[:-1]), SOURCES)
    assert (held.ne, held.length) == (0, pytest.approx((2 + 5) / (6 * 9 / 7)))
    guessed = measured(lambda text: f"{text} and so on", SOURCES)
    assert guessed.ne == pytest.approx(6 / (10 + 5))  # of the first source, three words twice
    assert guessed.length == pytest.approx((6 + 9) / (10 * 9 / 7))


def test_sources_that_come_whole_say_nothing_of_length(measured) -> None:
    assert measured(str, ["h i"]) == Steadiness(1, 0.0, None, None)
    with pytest.raises(OptionError, match="sources must be one or more"):
        measured(str, [])
