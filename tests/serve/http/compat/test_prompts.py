"""The languages that prompts ask for."""

from __future__ import annotations

import pytest

from redraft.serve.http.compat.naming import source_of, target_of


@pytest.mark.parametrize(
    ("prompt", "target", "source"),
    [
        ("provide the translation of the sentence in 🔤 to Simplified Chinese within a single line", "zh", None),
        ("Translate the user's text into German. Maintain the tone. In French this would be wrong.", "de", None),
        ("Translate the following English text:\n\n", None, "en"),
        ("Translate from English to Japanese.", "ja", "en"),
        ("translate to American English", "en", None),
        ("translate into **Brazilian Portuguese**", "pt", None),
        ("Target language: Traditional Chinese", "zh-Hant", None),
        ("to zh-CN", "zh", None),
        ("Translate to French (fr-FR)", "fr", None),
        ("You are a German translator", "de", None),
        ("translate to german, please", "de", None),
        ("Translate into Chinese (Traditional).", "zh-Hant", None),
        ("Translate into Chinese (Simplified)", "zh", None),
        ("Translate into **Chinese** (Traditional, Taiwan)", "zh-Hant", None),
        ("Translate into Chinese (in traditional characters)", "zh-Hant", None),
        ("Translate into Chinese, Traditional", "zh-Hant", None),
        ("Translate into Chinese Traditional", "zh-Hant", None),
        ("Translate into Chinese (繁體中文)", "zh-Hant", None),
        ("Translate into Chinese (中文)", "zh", None),
        ("Translate into Chinese. Use traditional characters.", "zh-Hant", None),
        ("translate to traditional chinese", "zh-Hant", None),
        ("translate to chinese (traditional)", "zh-Hant", None),
        ("Translate to Chinese (zh-TW)", "zh-Hant", None),
        ("Target language: Serbian (Latin)", "sr-Latn", None),
        ("Translate into Portuguese (Portugal)", "pt-PT", None),
        ("Translate into European Portuguese", "pt-PT", None),
        ("Translate into German (formal)", "de", None),
        ("Translate from Chinese (Traditional) into English", "en", "zh-Hant"),
        ("Translate to Deutsch.", "de", None),
        ("Translate from Deutsch into Brazilian Portuguese", "pt", "de"),
        ("From English To German", "de", "en"),
        ("I want to even the odds. Listen to See what comes.", None, None),
        ("You are a helpful assistant.", None, None),
        ("", None, None),
    ],
)
def test_languages_in_plain_words(prompt: str, target: str | None, source: str | None) -> None:
    assert (target_of(prompt), source_of(prompt)) == (target, source)
