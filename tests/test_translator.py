"""The library's front door: what callers can get wrong, and calls from several threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from redraft import Failure, Style, Translator, Update
from redraft.errors import ModelError, OptionError
from redraft.types import Rows, Score
from tests.fakes import RandomModel


class OneAtATime(RandomModel):
    """A model that notices passes of two translations at once, which a real one does not survive."""

    passing = mixed = 0

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        self.passing += 1
        time.sleep(0.0005)
        self.mixed += self.passing > 1
        self.passing -= 1
        return super().score(requests)


def opened(model: RandomModel, to: Sequence[str] = ("de",)) -> Translator:
    return Translator(model, to, style=Style(template="tower"), max_tokens=8)


def test_calls_from_several_threads_wait_for_each_other() -> None:
    model = OneAtATime()
    with opened(model) as translator, ThreadPoolExecutor(4) as pool:
        updates = [Update(str(number), 0, f"Sentence {number}.", final=True) for number in range(12)]
        answers = list(pool.map(translator.translate, updates))
    assert model.mixed == 0
    assert [{event.utterance for event in events} for events in answers] == [{str(number)} for number in range(12)]


def test_one_language_is_a_list_of_one() -> None:
    with pytest.raises(OptionError, match=r"^to must be a list of languages such as \['de'\], not 'de'$"):
        opened(RandomModel(), to="de")


def test_a_model_may_be_named_by_a_path(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'.*none.gguf' does not exist"):
        Translator.open(tmp_path / "none.gguf", to=["de"])


def test_a_closed_translator_says_so() -> None:
    translator = opened(RandomModel())
    translator.close()
    translator.close()
    assert translator.translate(Update("1", 3, "Hello.")) == [Failure("the translator is closed", None, "1", 3)]


def test_an_unknown_language_is_refused_by_name() -> None:
    with opened(RandomModel(), ["de", "ja"]) as translator:
        assert translator.translation("ja").language == "ja"
        with pytest.raises(OptionError, match=r"^language must be one of de, ja, not 'fr'$"):
            translator.translation("fr")
