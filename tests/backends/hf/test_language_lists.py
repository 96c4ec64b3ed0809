"""The whole language lists of NLLB, M2M-100 and mBART: a code is given for its language and script, or none is."""

from __future__ import annotations

from functools import cache

import langcodes
import pytest
from iso639 import iter_langs
from langcodes.data_dicts import LIKELY_SUBTAGS

pytest.importorskip("torch", reason="needs the extra hf")

from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as MBART_25
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART_50
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB

from redraft.backends.hf.encoder_decoder import LanguageCodes
from redraft.captions.languages import parse_language
from redraft.errors import OptionError

LISTS = {"NLLB": NLLB, "M2M-100": M2M["m2m100"], "mBART": MBART_25, "mBART-50": MBART_50}

#: Languages that NLLB writes in a script that CLDR does not expect, so that the script has to be named.
NAMED_ONLY = {"crh": "crh-Latn", "sat": "sat-Beng", "tzm": "tzm-Tfng"}

#: What CLDR calls by another code than ISO 639: members that stand for a macrolanguage, and Filipino.
ALIKE = {"pbt": "ps", "quy": "qu", "fuv": "ff", "nb": "no", "nob": "no", "ns": "nso", "tl": "fil"}


def codes(name: str) -> LanguageCodes:
    return LanguageCodes({code: number for number, code in enumerate(LISTS[name])})


parsed = cache(parse_language)


def given(known: LanguageCodes, tag: str) -> str | None:
    try:
        return known.name_of(parsed(tag), "target language")
    except OptionError:
        return None


@cache
def standard(code: str) -> tuple[str, str | None]:
    """Language and script by CLDR alone, None if unknown; Korean's own letters are part of Korean writing."""
    code = code.removesuffix("_XX")
    first = code.split("_")[0].split("-")[0]
    found = langcodes.Language.get(code.replace(first, ALIKE.get(first, first), 1)).prefer_macrolanguage()
    # Of a language that it does not know CLDR says the script of American English.
    script = found.script or (found.maximize().script if found.language in LIKELY_SUBTAGS else None)
    return ALIKE.get(found.language or "", found.language or ""), {"Hang": "Kore"}.get(script or "", script)


@pytest.mark.parametrize("name", LISTS)
def test_every_code_is_given_to_those_who_ask_for_it(name: str) -> None:
    known = codes(name)
    wanted = {code: {"ns": "nso"}.get(code, code.removesuffix("_XX")) for code in LISTS[name]}
    # ISO has withdrawn ajp in favour of apc, which NLLB has too.
    expected = {code: None if code == "ajp_Arab" else code for code in wanted}
    assert {code: given(known, tag) for code, tag in wanted.items()} == expected


@cache
def asked() -> list[str]:
    """Every language of ISO 639-1 and of the lists, plain and in every script that the lists know."""
    plain = {language.pt1 for language in iter_langs() if language.pt1}
    plain |= {code.split("_")[0] for each in LISTS.values() for code in each}
    scripts = sorted({code.split("_")[1] for code in NLLB})
    return [
        f"{code}{script}"
        for code in sorted(plain - {"ajp", "ns"})
        for script in ("", *(f"-{each}" for each in scripts))
    ]


@pytest.mark.parametrize("name", LISTS)
def test_no_other_language_or_script_is_ever_given(name: str) -> None:
    known, count = codes(name), 0
    for tag in asked():
        if (found := given(known, tag)) is not None:
            count += 1
            (language, script), (other, other_script) = standard(tag), standard(found)
            assert language == other, (tag, found)
            assert script is None or other_script is None or script == other_script, (tag, found)
    assert count >= len(LISTS[name])


@pytest.mark.parametrize("name", LISTS)
def test_codes_of_every_language(name: str) -> None:
    known = codes(name)
    two = [language.pt1 for language in iter_langs() if language.pt1]
    there = {standard(code) for code in LISTS[name]}
    assert {code for code in two if given(known, code)} == {code for code in two if standard(code) in there}
    plain = {code.split("_")[0] for code in LISTS[name]} - {"ajp", "ns"}
    assert {code for code in plain if given(known, code) is None} == (set(NAMED_ONLY) if name == "NLLB" else set())


@pytest.mark.parametrize(
    ("name", "tag", "code"),
    [
        *(
            ("NLLB", "ko", "kor_Hang"),
            ("NLLB", "ps", "pbt_Arab"),
            ("NLLB", "pbu", "pbt_Arab"),
            ("NLLB", "quz", "quy_Latn"),
            ("NLLB", "qu", "quy_Latn"),
            ("NLLB", "no", "nob_Latn"),
        ),
        *(
            ("NLLB", "tw", "twi_Latn"),
            ("NLLB", "ak", "aka_Latn"),
            ("NLLB", "zh-HK", "zho_Hant"),
            ("NLLB", "fa", "pes_Arab"),
        ),
        *(("NLLB", "acm", "acm_Arab"), ("NLLB", "taq", "taq_Latn"), ("NLLB", "fil", "tgl_Latn")),
        *(("M2M-100", "nso", "ns"), ("M2M-100", "nb", "no"), ("M2M-100", "iw", "he"), ("M2M-100", "pbt", "ps")),
        *(("mBART-50", "pt-PT", "pt_XX"), ("mBART-50", "zh-SG", "zh_CN"), ("mBART-50", "es-MX", "es_XX")),
    ],
)
def test_what_is_given(name: str, tag: str, code: str) -> None:
    assert given(codes(name), tag) == code


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        *(("NLLB", "sr-Latn"), ("M2M-100", "sr-Latn"), ("M2M-100", "zh-TW")),
        *(("M2M-100", "yue"), ("M2M-100", "nn"), ("mBART-50", "lb"), ("mBART-50", "bs"), ("mBART-50", "gsw")),
        *(("mBART-50", "ms"), ("mBART-50", "nds"), ("M2M-100", "arz")),
    ],
)
def test_what_is_refused(name: str, tag: str) -> None:
    assert given(codes(name), tag) is None


def test_refusal_names_scripts_that_there_are() -> None:
    for tag, known in NAMED_ONLY.items():
        with pytest.raises(
            OptionError, match=f"^target language '{tag}' is not supported by this model; allowed: {known}$"
        ):
            codes("NLLB").name_of(parse_language(tag), "target language")


def test_tied_codes() -> None:
    for order in (["cmn", "cmn_Hans", "cmn_Hant"], ["cmn_Hant", "cmn_Hans", "cmn"]):
        known = LanguageCodes({code: number for number, code in enumerate(order)})
        assert [given(known, tag) for tag in ("zh", "zh-TW")] == ["cmn_Hans", "cmn_Hant"]


def test_script_has_to_be_named() -> None:
    known = LanguageCodes({"acm_Arab": 0, "acm_Latn": 1})
    assert [given(known, tag) for tag in ("acm", "acm-Latn")] == [None, "acm_Latn"]
