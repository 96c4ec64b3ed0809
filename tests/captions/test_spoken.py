"""Streams in which several languages are spoken: each sentence is translated from its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import pytest

from redraft import AsyncTranslator, Caption, Failure, Style, Translator, Update
from redraft.captions import spoken
from redraft.captions.events import Event
from redraft.captions.spoken import Spoken
from redraft.decoding.method import Value
from redraft.errors import InputError, MissingExtra, OptionError
from redraft.translator import source_languages
from tests.captions.detector import Detector
from tests.fakes import RandomModel

#: Whose outputs end.
MODEL = partial(RandomModel, end_bias=3.0)


@pytest.fixture(autouse=True)
def detector(monkeypatch: pytest.MonkeyPatch) -> Detector:
    made = Detector()
    monkeypatch.setattr(spoken, "_detector", lambda: made)
    return made


def languages(found: Spoken, *texts: str, utterance: str = "1") -> list[str | None]:
    return [found.named(Update(utterance, seq, text)).language for seq, text in enumerate(texts)]


def test_one_language_is_not_detected(detector: Detector) -> None:
    update = Update("1", 0, "ich sehe")
    assert Spoken(["en"]).named(update) is update
    assert detector.asked == []


def test_language_stays_until_another_is_clearly_more_probable() -> None:
    found = Spoken(["en", "de"])
    assert languages(found, "", "ja", "ich", "ich so see", "ich see the house") == ["en", "en", "de", "de", "en"]
    assert languages(found, "...", "so", utterance="2") == ["en", "en"]
    assert languages(found, "wir sehen", utterance="3") == ["de"]


def test_recogniser_knows_better(detector: Detector) -> None:
    found = Spoken(["en", "de"])
    assert found.named(Update("1", 0, "we see", language="de-AT")).language == "de"
    assert found.named(Update("2", 0, "so")).language == "de"  # the one before
    assert detector.asked == ["so"]
    for other in ("fr", "none at all"):
        with pytest.raises(InputError, match="language must be one that may be spoken"):
            found.named(Update("3", 0, "nous", language=other))


def test_any_language_that_the_model_has() -> None:
    assert Spoken([]).languages == ("de", "en", "fr", "zh")
    assert Spoken([], ["fr", "en-GB"]).languages == ("en", "fr")
    assert Spoken([], ["zh-Hant", "de"]).languages == ("de",)  # the detector's zh is simplified
    with pytest.raises(OptionError, match="none of the model's languages"):
        Spoken([], ["ja"])


@pytest.mark.parametrize(
    ("sources", "problem"),
    [(["en", "ja"], "'ja' cannot be detected"), (["zh", "zh-Hant"], "'zh-Hant' cannot be told from 'zh'")],
)
def test_what_cannot_be_detected(sources: list[str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        Spoken(sources)


def test_style() -> None:
    assert Style("German", also_spoken=["English"]).sources == ("de", "en")
    assert Style("auto").sources == ()
    with pytest.raises(OptionError, match="auto means any language"):
        Style("auto", also_spoken=["en"])
    with pytest.raises(OptionError, match="also_spoken must be a list of languages"):
        Style("en", also_spoken="de")


def two_way(model: RandomModel, to: Sequence[str], **options: Value) -> Translator:
    style = Style("en", template="tower", also_spoken=["de"])
    return Translator(model, to, style=style, options={"max_tokens": 60, **options})


TALK = (
    Update("1", 0, "we see"),
    Update("1", 1, "we see the house.", True),
    Update("2", 0, "wir sehen"),
    Update("2", 1, "wir sehen das Haus.", True),
)


def test_each_sentence_is_shown_as_it_is_in_its_own_language() -> None:
    model = MODEL()
    with two_way(model, ["en", "de", "ja"]) as translator:
        found = [event for update in TALK for event in translator.translate(update)]
    captions = [event for event in found if isinstance(event, Caption)]
    assert len(captions) == 12 == len(found)
    for caption in captions:
        assert caption.source_language == ("en" if caption.utterance == "1" else "de")
        if caption.language == caption.source_language:
            assert (caption.text, caption.unstable) == (caption.source, "")
    own = [caption.language for caption in captions if caption.final and caption.text == caption.source]
    assert own == ["en", "de"]


def test_a_sentence_is_translated_as_if_only_its_language_was_spoken() -> None:
    texts = []
    for also_spoken in (["en"], []):
        style = Style("de", template="tower", also_spoken=also_spoken)
        with Translator(MODEL(3), ["ja"], style=style, options={"max_tokens": 60}) as one:
            events = [event for update in TALK[2:] for event in one.translate(update)]
        texts.append([event.text for event in events if isinstance(event, Caption)])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2 and all(texts[0])


def test_context_has_sentences_of_the_same_language(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompts = MODEL(), list[str]()
    encode = model.encode

    def kept(segments: Any) -> list[int]:
        prompts.append("".join(each.text for each in segments))
        return encode(segments)

    monkeypatch.setattr(model, "encode", kept)
    with two_way(model, ["ja"], context=2) as translator:
        for update in (TALK[1], TALK[3], Update("3", 0, "we go.", True)):
            translator.translate(update)
    english, german = "we see the house.", "wir sehen das Haus."
    last = next(prompt for prompt in prompts if "we go." in prompt)
    assert (english in last, german in last) == (True, False)


def test_unknown_language_is_a_failure() -> None:
    with two_way(MODEL(), ["de"]) as translator:
        (failure,) = translator.translate(Update("1", 0, "nous", language="fr"))
        assert isinstance(failure, Failure) and "'fr'" in failure.message
        (caption,) = translator.translate(Update("1", 0, "we see", True, language="en"))
        assert isinstance(caption, Caption) and caption.final


def test_async_translator() -> None:
    async def talk() -> AsyncIterator[Update]:
        for update in TALK:
            yield update

    async def translated() -> list[Event]:
        async with AsyncTranslator(two_way(MODEL(), ["en", "de"]), ahead=0) as translator:
            return [event async for event in translator.translate(talk())]

    found = asyncio.run(translated())
    own = {(each.utterance, each.language) for each in found if isinstance(each, Caption) and each.text == each.source}
    assert own == {("1", "en"), ("2", "de")}


def test_extra_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "py3langid", None)
    spoken._detector.cache_clear()
    with pytest.raises(MissingExtra, match=r"redraft\[detect\]"):
        Spoken(["en", "de"])


def test_real_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pytest.importorskip("py3langid", reason="needs the extra detect")
    spoken._detector.cache_clear()
    found = Spoken(["en", "de"])
    sentences = ["The children are playing in the garden.", "Die Kinder spielen im Garten.", "It is raining today."]
    assert [languages(found, text)[0] for text in sentences] == ["en", "de", "en"]
    growing = "Wir leben in einem kleinen Haus am Meer.".split()
    assert languages(found, *(" ".join(growing[:n]) for n in range(2, len(growing) + 1)))[1:] == ["de"] * 6
    everything = Spoken([]).languages
    assert {"en", "de", "ja", "zh", "fr", "uk"} <= set(everything) and len(everything) > 80
    assert languages(Spoken([], ["en", "ja"]), "今日は雨が降っています。") == ["ja"]


def test_languages_of_models() -> None:
    assert {"en", "de"} <= set(source_languages(MODEL(), Style(template="tower")))
    assert source_languages(MODEL(), Style(template="chat")) == ()
    assert source_languages(MODEL(), Style(prompt="{source}")) == ()
