"""The library's front door: what callers can get wrong, and calls from several threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from redraft import Caption, Failure, Style, Translator, Update
from redraft.decoding.types import Rows, Score
from redraft.errors import InputError, ModelError, OptionError
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
    return Translator(model, to, style=Style(template="tower"), options={"max_tokens": 8})


def test_calls_from_several_threads_wait_for_each_other() -> None:
    model = OneAtATime()
    with opened(model) as translator, ThreadPoolExecutor(4) as pool:
        updates = [Update(str(number), 0, f"Sentence {number}.", final=True) for number in range(12)]
        answers = list(pool.map(translator.translate, updates))
    assert model.mixed == 0
    assert [{event.utterance for event in events} for events in answers] == [{str(number)} for number in range(12)]


def test_languages_by_name() -> None:
    with opened(RandomModel(), ["German", "zh_cn"]) as translator:
        events = translator.translate(Update("1", 0, "A sentence.", final=True))
        assert {event.language for event in events} == {"de", "zh-CN"}
        assert translator.state("German") is translator.state("de")
        with pytest.raises(OptionError, match="language must be one of de, zh-CN, not 'ja'"):
            translator.state("ja")


EXACT = {"context_length": 512, "threads": 1, "gpu_layers": 0, "exact": True}


def final_text(options: dict[str, float]) -> str:
    with Translator.open("demo-tiny", to=["de", "ja"], options=options, engine=EXACT) as translator:
        for seq, text in enumerate(("I have", "I have a dog and two", "I have a dog and two cats.")):
            events = translator.translate(Update("1", seq, text, final=seq == 2))
    assert all(isinstance(event, Caption) and event.text for event in events)
    return " ".join(event.text for event in events if isinstance(event, Caption))


def test_no_bias() -> None:
    """Without a bias, candidates for a final text are what greedy decoding finds."""
    with Translator.open("demo-tiny", to=["de", "ja"], method="ar", engine=EXACT) as greedy:
        events = greedy.translate(Update("1", 0, "I have a dog and two cats.", final=True))
    expected = " ".join(event.text for event in events if isinstance(event, Caption))
    assert final_text({"beta": 0, "hidden_beta": 0, "hypotheses": 1, "margin": 0}) == expected


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("de", "to must be a list of languages such as ['de'], not 'de'"),
        (None, "to must be a list of languages such as ['de', 'ja'], not None"),
        ([None], "to must be a list of languages such as ['de', 'ja'], not [None]"),
        (b"de", "to must be a list of languages such as ['de', 'ja'], not b'de'"),
        ([], "at least one target language is needed"),
    ],
)
def test_target_languages_are_list(to: Any, message: str) -> None:
    for opening in (lambda: opened(RandomModel(), to), lambda: Translator.open("demo-tiny", to=to)):
        with pytest.raises(OptionError) as raised:
            opening()
        assert str(raised.value) == message


def test_updates_out_of_order() -> None:
    with opened(RandomModel()) as translator:
        assert isinstance(translator.translate(Update("1", 1, "One"))[-1], Caption)
        for seq in (1, 0):
            (failure,) = translator.translate(Update("1", seq, "One two"))
            message = f"seq of utterance '1' must be greater than its last one, 1, not {seq}"
            assert failure == Failure(message, None, "1", seq)
        assert all(event.seq == 2 for event in translator.translate(Update("1", 2, "One two", final=True)))
        (failure,) = translator.translate(Update("1", 3, "One two three"))
        assert isinstance(failure, Failure) and "utterance '1' is final already" in failure.message
        assert isinstance(translator.translate(Update("2", 0, "Three"))[-1], Caption)


@pytest.mark.parametrize("thing", [None, "One", ("1", 0, "One")])
def test_only_updates_are_translated(thing: Any) -> None:
    with opened(RandomModel()) as translator, pytest.raises(InputError) as raised:
        translator.translate(thing)
    assert str(raised.value) == f"translate takes an Update, not {thing!r}"


def test_model_may_be_named_by_path(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'.*none.gguf' does not exist"):
        Translator.open(tmp_path / "none.gguf", to=["de"])


def test_closed_translator() -> None:
    translator = opened(RandomModel())
    translator.close()
    translator.close()
    assert translator.translate(Update("1", 3, "Hello.")) == [Failure("the translator is closed", None, "1", 3)]


def test_unknown_language_is_refused_by_name() -> None:
    with opened(RandomModel(), ["de", "ja"]) as translator:
        assert translator.state("ja") is translator.states["ja"]
        with pytest.raises(OptionError, match=r"^language must be one of de, ja, not 'fr'$"):
            translator.state("fr")


def test_repr_and_help() -> None:
    with Translator.open("demo-tiny", to=["de", "ja"], method="ar") as translator:
        assert repr(translator) == "<Translator: demo-tiny, en to de, ja, ar>"
    assert (Translator.__doc__ or "").startswith('Open one with ``Translator.open("demo", to=["de"])``')


@pytest.mark.parametrize("value", [2, "wonder", {"wonder": 2}])
@pytest.mark.parametrize("field", ["style", "engine", "options", "method"])
def test_option_of_another_type(field: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"{field} .*(must be a |is not known|has no option)|has no option 'wonder'"):
        Translator.open("demo-tiny", to=["de"], **{"method": "ssbd", field: value})
