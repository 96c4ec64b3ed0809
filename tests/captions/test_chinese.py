"""Chinese captions in the script of the target language."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from redraft.captions import script
from redraft.captions.languages import parse_language
from redraft.captions.script import script_of, writing_of

SIMPLIFIED = "今天天气很好，我们去公园。"
TRADITIONAL = "今天天氣很好，我們去公園。"


@pytest.fixture
def no_opencc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "opencc", None)
    script._converter.cache_clear()
    yield
    script._converter.cache_clear()


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (SIMPLIFIED, "Hans"),
        (TRADITIONAL, "Hant"),
        ("早上好", None),  # the same in both
        ("陶喆早上好", None),  # a name with a character that GB 2312 lacks
        ("good morning", None),
        ("", None),
    ],
)
def test_script(text: str, script: str | None) -> None:
    assert script_of(text) == script


@pytest.mark.parametrize("language", ["de", "ja", "ko"])
def test_other_languages_are_left_alone(language: str) -> None:
    writing = writing_of(parse_language(language))
    assert (writing.convert(TRADITIONAL), writing.problem(SIMPLIFIED)) == (TRADITIONAL, "")


@pytest.mark.parametrize("language", ["zh-TW", "Traditional Chinese", "zh-HK"])
def test_converts(language: str) -> None:
    writing = writing_of(parse_language(language))
    assert (writing.convert(SIMPLIFIED), writing.problem(SIMPLIFIED)) == (TRADITIONAL, "")
    assert writing.convert("皇后來了。") == "皇后來了。"
    assert writing_of(parse_language("zh")).convert(TRADITIONAL) == SIMPLIFIED


def test_reports_without_converter(no_opencc: None) -> None:
    writing = writing_of(parse_language("zh-TW"))
    assert writing.convert(SIMPLIFIED) == SIMPLIFIED
    assert "Simplified Chinese" in writing.problem(SIMPLIFIED) and "zh-TW" in writing.problem(SIMPLIFIED)
    assert writing.problem(TRADITIONAL) == ""
    assert "Traditional Chinese" in writing_of(parse_language("zh")).problem(TRADITIONAL)
