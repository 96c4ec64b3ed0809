from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iso639 import iter_langs

from redraft.captions.languages import closest, parse_language, parse_languages
from redraft.errors import OptionError


@pytest.mark.parametrize(
    ("same", "canonical"),
    [
        (["zh", "zh-CN", "zh-Hans", "zh_cn", "ZH-hans-cn", "cmn", "Chinese", "simplified chinese", "Mandarin"], "zh"),
        (["zh-TW", "zh-Hant", "zh_tw", "Traditional Chinese", "zh-CHT"], "zh-Hant"),
        (["Chinese (Traditional)", "chinese (traditional)"], "zh-Hant"),
        (["Chinese (Simplified)", "zh-CHS"], "zh"),
        (["zh-HK", "Traditional Chinese (Hong Kong)"], "zh-HK"),
        (["de", "de-DE", "German", "GERMAN", " de ", "deu"], "de"),
        (["pt", "pt-BR", "Brazilian Portuguese"], "pt"),
        (["pt-PT", "pt_pt"], "pt-PT"),
        (["he", "iw"], "he"),
        (["el", "Greek", "modern greek"], "el"),
        (["pa", "Punjabi", "Panjabi"], "pa"),
        (["sw", "Swahili", "swh"], "sw"),
    ],
)
def test_spellings_of_one_language_are_same(same: list[str], canonical: str) -> None:
    assert {parse_language(text).canonical for text in same} == {canonical}


def test_languages_that_differ_stay_apart() -> None:
    tags = ["zh", "zh-TW", "zh-HK", "yue", "pt", "pt-PT", "de", "de-AT", "ja", "sr", "sr-Latn", "en", "en-GB"]
    assert len({parse_language(tag).canonical for tag in tags}) == len(tags)


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("de", "de", "German"),
        ("ja", "ja", "Japanese"),
        ("zh-CN", "zh", "Chinese"),
        ("zh-TW", "zh", "Traditional Chinese"),
        ("zh-HK", "zh", "Traditional Chinese (Hong Kong)"),
        ("pt", "pt", "Portuguese"),
        ("pt-BR", "pt", "Brazilian Portuguese"),
        ("pt-PT", "pt", "European Portuguese"),
        ("de-AT", "de", "German (de-AT)"),
        ("sr-Latn", "sr", "Serbian (sr-Latn)"),
        ("en-US", "en", "English"),
        ("el", "el", "Greek"),
        ("sw", "sw", "Swahili"),
        ("yue", "yue", "Cantonese"),
        ("pa-Arab", "pa", "Punjabi (pa-Arab)"),
        ("bcn", "bcn", "Bali (Nigeria)"),
    ],
)
def test_code_and_name(text: str, code: str, name: str) -> None:
    language = parse_language(text)
    assert (language.code, language.name) == (code, name)


def test_tag_stays_as_user_wrote_it() -> None:
    assert parse_language(" zh_cn\n").tag == "zh_cn"


@pytest.mark.parametrize(
    ("text", "standard"),
    [
        ("German", "de"),
        ("DE", "de"),
        ("de-de", "de-DE"),
        ("zh_cn", "zh-CN"),
        ("Chinese (Traditional)", "zh-Hant"),
        ("iw", "he"),
    ],
)
def test_standard_tag(text: str, standard: str) -> None:
    assert parse_language(text).standard == standard
    assert parse_languages([text]) == [standard]


@pytest.mark.parametrize(
    "text",
    # Among them: valid codes that are no one language, an unknown script and territory, and words that are names of
    # languages too (Auq is "A").
    [
        *("", "  ", "xx-zz", "xx", "und", "mul", "zxx", "qaa", "gem", "art", "Germanic languages", "de-ZZ", "de-Zzzz"),
        *("a", "demo", "d", "de-", "de_DE.UTF-8", "deutsch", "Undetermined", "\x00", "-"),
        *("Chinese (Taiwan)", "French (Canada)", "Canadian French", "Serbian (Latin)", "Traditional", "(Latin)", "US"),
    ],
)
def test_unknown_languages_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_language(text)
    expected = f"target language {text!r} is not known: use a BCP 47 tag such as de, ja or zh-CN for each language"
    assert str(caught.value) == expected


def test_error_names_field_and_stays_short() -> None:
    with pytest.raises(OptionError, match=r"^source language 'xxx") as caught:
        parse_language("x" * 1_000_000, "source language")
    assert len(str(caught.value)) < 200


@given(st.text(max_size=12))
def test_any_text_is_language_or_option_error(text: str) -> None:
    try:
        language = parse_language(text)
    except OptionError:
        return
    assert parse_language(language.canonical).canonical == language.canonical
    assert language.tag == text.strip()
    assert language.name and language.code


def test_spaces_between_words() -> None:
    assert not any(parse_language(code).spaced for code in ("zh", "ja", "th", "lo", "km", "my", "yue"))
    assert all(parse_language(code).spaced for code in ("de", "en", "ko", "ar", "hi", "ru", "vi"))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("de-AT", "de"), ("de", "de"), ("zh-SG", "zh"), ("zh-TW", None), ("fr", None), ("pt-PT", "pt-PT")],
)
def test_closest_serves_readers_or_refuses(wanted: str, expected: str | None) -> None:
    supported = [parse_language(tag) for tag in ("zh", "pt-BR", "pt-PT", "de")]
    found = closest(parse_language(wanted), supported)
    assert (found.tag if found else None) == expected


@pytest.mark.parametrize(
    ("wanted", "offered", "expected"),
    [
        ("ko", "ko-Hang", True),
        ("ps", "pbt", True),
        ("sr", "sr-Latn", False),
        ("sr-Latn", "sr", False),
        ("lb", "de", False),
        ("gsw", "de", False),
        ("bs", "hr", False),
        ("ms", "id", False),
        ("zh", "yue", False),
        ("pbu", "pbt", True),
        ("Southern Pashto", "ps", True),
    ],
)
def test_another_language_or_script_is_never_closest(wanted: str, offered: str, expected: bool) -> None:
    assert (closest(parse_language(wanted), [parse_language(offered)]) is not None) == expected


@pytest.mark.parametrize("tag", ["en-GB-oed", "i-default", "zh-min-nan", "i-klingon", "art-lojban", "no-bok"])
def test_old_tags(tag: str) -> None:
    """They have no codes of three letters, and may be refused, but never break off."""
    with suppress(OptionError):
        wanted = parse_language(tag)
        assert closest(wanted, [parse_language(each) for each in ("en", "nb", "no", "de", "en-US")]) is not wanted


def test_nothing_is_closest_to_nothing() -> None:
    assert closest(parse_language("de"), []) is None


def test_every_two_letter_code_has_one_name_of_its_own() -> None:
    codes = [language.pt1 for language in iter_langs() if language.pt1 and language.pt1 != "tw"]  # Twi counts as Akan
    assert len(codes) > 170
    names = {code: parse_language(code).name for code in codes}
    assert len(set(names.values())) == len(names)
    assert {code: name for code, name in names.items() if re.search(r"[^\w ]", name.replace("-", ""))} == {}
    assert {code: name for code, name in names.items() if parse_language(name).code != parse_language(code).code} == {}


def test_names_that_langcodes_would_load_are_not_needed() -> None:
    query = (
        "import sys; sys.modules['language_data'] = None\n"
        "from redraft.captions.languages import closest, parse_language as p\n"
        "print(p('german').name, p('sw').name, closest(p('de-AT'), [p('de')]).tag, p('zh-TW').spaced)"
    )
    done = subprocess.run([sys.executable, "-c", query], capture_output=True, text=True, check=True, timeout=200)
    assert done.stdout == "German Swahili de False\n"


def test_targets_are_those_given_each_once() -> None:
    assert parse_languages(["de", " ja", "de", "zh-Hant", "zh"]) == ["de", "ja", "zh-Hant", "zh"]
    assert parse_languages([]) == []
    with pytest.raises(OptionError, match="'German' and 'de-DE' are the same"):
        parse_languages(["ja", "German", "de-DE"])
