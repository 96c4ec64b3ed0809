"""A glossary is of a target language, in the same form for translators, clients and the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from redraft import protocol
from redraft.captions.languages import parse_language
from redraft.captions.style import Style
from redraft.client.wire import start_of
from redraft.errors import OptionError
from redraft.translator import Translator
from tests.fakes import RandomModel

GLOSSARY = {"German": [("hull", "Rumpf"), ("keel", "Kiel")], "zh": [("hull", "船体")]}


@pytest.mark.parametrize(
    ("target", "terms"),
    [("de", (("hull", "Rumpf"), ("keel", "Kiel"))), ("zh-Hans", (("hull", "船体"),)), ("zh-Hant", ()), ("ja", ())],
)
def test_terms(target: str, terms: Sequence[tuple[str, str]]) -> None:
    assert Style(glossary=GLOSSARY).terms(parse_language(target)) == terms


def test_start() -> None:
    start = start_of(["de", "zh"], Style(glossary=GLOSSARY))
    sent = protocol.FROM_CLIENT.validate_json(start.wire())
    assert isinstance(sent, protocol.Start)
    assert Style(glossary=sent.glossary).terms(parse_language("de")) == (("hull", "Rumpf"), ("keel", "Kiel"))


@pytest.mark.parametrize(
    "wrong",
    [
        (("hull", "Rumpf"),),
        {"de": "hull=Rumpf"},
        {"de": {"hull": "Rumpf"}},
        {"de": ["hull"]},
        {"de": [("hull",)]},
        {"de": [("hull", 1)]},
        {"de": [("hull", " ")]},
        {"de": [], "German": []},
    ],
)
def test_other_forms(wrong: Any) -> None:
    with pytest.raises(OptionError) as raised:
        Style(glossary=wrong)
    assert raised.value.field == "glossary"


def test_prompts_have_terms_of_their_language(monkeypatch: pytest.MonkeyPatch) -> None:
    model, encoded = RandomModel(), list[str]()
    tokenize = model.encode

    def encode(segments: Any) -> Any:
        encoded.append(repr(segments))
        return tokenize(segments)

    monkeypatch.setattr(model, "encode", encode)
    Translator(model, ["de", "zh", "ja"], style=Style(template="tower", glossary=GLOSSARY)).close()
    assert [[term in text for term in ("Rumpf", "船体")] for text in encoded] == [
        [True, False],
        [False, True],
        [False, False],
    ]
    with pytest.raises(OptionError, match="glossary must be for one of de, ja, not 'zh'"):
        Translator(model, ["de", "ja"], style=Style(template="tower", glossary=GLOSSARY))
