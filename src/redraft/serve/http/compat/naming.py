"""The languages that prompts name.

Names are looked up word by word in one table, and the words around them say what is meant.  Time grows in proportion to
the length of a prompt.  Names in other languages than English are those that tools are most often set to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from redraft.captions.languages import QUALIFIERS, canonical_tag, names, parse_language
from redraft.errors import OptionError

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
#: The longest name that may begin at a place, and a tag.
_NAME_AT = re.compile(rf"{_WORD.pattern}(?: {_WORD.pattern}){{0,2}}")
_TAG = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4}){0,2}(?![\w-])")
#: A sign before a tag.
_SIGN = re.compile(r"[:=\[\"'][ *]*\Z")
#: Number of characters at the beginning and at the end of a prompt that are searched, and before a name.
_START, _END, _NEAR = 4000, 2000, 80
#: What may stand between words that belong together.
_GAP = r"(?:_|[^\w.!?;。！？；]){1,4}"
#: Words about the script of Chinese elsewhere in a prompt.
_TRADITIONAL = re.compile(r"traditional (?:chinese|characters|script|hanzi|mandarin)|繁體|繁体|正體", re.IGNORECASE)
_SIMPLIFIED = re.compile(r"simplified (?:chinese|characters|script|hanzi|mandarin)|简体|簡體", re.IGNORECASE)

#: Word before a name -> how plainly it marks the target language, lowest first.
_BEFORE = {"into": 0, "target": 1, "tgt": 1, "to": 2, "in": 3, "as": 3}
#: The rank of "a German translator", and of names in lower case.
_TRANSLATOR, _LOWER = 4, 5
#: Ranks from this one on may also name another language: "Answer in English.", "a German translator".
VAGUE = 3
_SPOKEN = {"text", "sentence", "speech", "transcript", "caption"}

#: Names in other languages: tag -> Chinese, Japanese and Korean, and words of languages with spaces.
_UNSPACED = {
    "en": "英语 英文 英語 영어",
    "de": "德语 德文 ドイツ語 独語 독일어",
    "fr": "法语 法文 フランス語 仏語 프랑스어",
    "es": "西班牙语 西班牙文 スペイン語 스페인어",
    "it": "意大利语 意大利文 イタリア語 이탈리아어",
    "pt": "葡萄牙语 葡萄牙文 ポルトガル語 포르투갈어",
    "ru": "俄语 俄文 ロシア語 러시아어",
    "ja": "日语 日文 日本語 일본어",
    "ko": "韩语 韩文 韓国語 韓文 한국어",
    "zh": "中文 汉语 简体中文 简体字 中国語 簡体字中国語 중국어",
    "zh-Hant": "繁体中文 繁體中文 繁体字中国語 正體中文",
    "ar": "阿拉伯语 阿拉伯文 アラビア語 아랍어",
    "hi": "印地语 ヒンディー語 힌디어",
    "nl": "荷兰语 オランダ語 네덜란드어",
    "pl": "波兰语 ポーランド語 폴란드어",
    "tr": "土耳其语 トルコ語 터키어 튀르키예어",
    "uk": "乌克兰语 ウクライナ語 우크라이나어",
    "vi": "越南语 越南文 ベトナム語 베트남어",
    "th": "泰语 泰文 タイ語 태국어",
    "id": "印尼语 印度尼西亚语 インドネシア語 인도네시아어",
}
_SPACED = {
    "en": "englisch englische anglais inglés inglês inglese английский",
    "de": "deutsch deutsche allemand alemán alemão tedesco немецкий",
    "fr": "französisch französische français francés francês francese французский",
    "es": "spanisch spanische espagnol español espanhol spagnolo испанский",
    "it": "italienisch italienische italien italiano итальянский",
    "pt": "portugiesisch portugiesische portugais portugués português portoghese португальский",
    "ru": "russisch russische russe ruso russo русский",
    "ja": "japanisch japanische japonais japonés japonês giapponese японский",
    "ko": "koreanisch koreanische coréen coreano корейский",
    "zh": "chinesisch chinesische chinois chino chinês cinese китайский",
    "ar": "arabisch arabische arabe árabe arabo арабский",
    "nl": "niederländisch niederländische néerlandais neerlandés holandês olandese нидерландский",
    "pl": "polnisch polnische polonais polaco polonês polacco польский",
    "tr": "türkisch türkische turc turco турецкий",
    "uk": "ukrainisch ukrainische ukrainien ucraniano ucraino украинский",
}
#: Traditional characters of the Chinese names.
_TRADITIONAL_FORMS = str.maketrans("语韩汉简体荷兰乌兰", "語韓漢簡體荷蘭烏蘭")
_NAME = {
    name: tag
    for tag, given in _UNSPACED.items()
    for each in given.split()
    for name in (each, each.translate(_TRADITIONAL_FORMS))
}
_UNSPACED_NAME = re.compile("|".join(sorted(_NAME, key=len, reverse=True)))
_FOREIGN = {name: tag for tag, given in _SPACED.items() for name in given.split()}
#: What stands before and behind such names in instructions to translate.
_INTO = ("译成", "译为", "译到", "譯成", "譯為", "翻訳先")
_INTO_BEHIND = ("に翻訳", "に訳", "へ翻訳", "로 번역", "으로 번역", "로 옮")
_INTO_WORDS = {"ins", "auf", "nach", "in", "en", "al", "a", "para", "o", "на"}
_FROM_BEHIND = ("文本", "原文", "から", "を", "の", "에서", "을", "를")
_FROM_WORDS = {"aus", "dem", "vom", "du", "de", "del", "do", "dal", "с"}
#: Words that say what a name behind them is for.
_MARKS = "|".join((*_BEFORE, "from", "source", "the", "this", "following", *_INTO_WORDS, *_FROM_WORDS))
#: What may stand between such a word and the name: words about the language, and others with a capital.
_BETWEEN = (
    rf"(?i:the|language|lang|is|{'|'.join(each for each in QUALIFIERS if ' ' not in each)})"
    rf"|(?!(?i:{_MARKS})(?![^\W_]))[A-ZÀ-ÖØ-ÞА-Я][^\W_]*(?:-[^\W_]+)*"
)
#: The word before a name, and what stands between them.
_MARK = re.compile(rf"(?<![^\W_])(?i:({_MARKS}))((?:{_GAP}(?:{_BETWEEN})){{0,3}}){_GAP}\Z")
#: What stands behind a name: words in brackets, or one word.
_BEHIND = re.compile(rf"[ *]{{0,3}}[(（\[][^)）\]\n]{{0,60}}|{_GAP}{_WORD.pattern}")


@dataclass(frozen=True, slots=True)
class Named:
    """A language that a prompt names.

    Attributes:
        tag: its canonical tag.
        target: how plainly it is named as the target, lowest first; None if it is not.
        source: whether it is named as the source.
    """

    tag: str
    target: int | None
    source: bool


def target_of(prompt: str) -> str | None:
    """Return the canonical tag of the target language named in a prompt; None if there is none."""
    found = [each for each in named(prompt) if each.target is not None]
    return min(found, key=lambda each: each.target or 0).tag if found else None


def source_of(prompt: str) -> str | None:
    """Return the canonical tag of the source language named in a prompt; None if there is none."""
    return next((each.tag for each in named(prompt) if each.source), None)


def names_target(instruction: str, prompt: str) -> bool:
    """Whether an instruction names the target language more plainly than the prompt beside it."""
    ranks = [[each.target for each in named(text) if each.target is not None] for text in (instruction, prompt)]
    told, beside = (min(rank) >= VAGUE if rank else None for rank in ranks)
    return told is not None and (beside is None or told < beside)


@lru_cache(maxsize=256)
def named(prompt: str) -> tuple[Named, ...]:
    """Return the languages that a prompt names as source or target, in order."""
    if len(prompt) > _START + _END:
        prompt = f"{prompt[:_START]}\n{prompt[-_END:]}"
    other_script = bool(_TRADITIONAL.search(prompt)) and not _SIMPLIFIED.search(prompt)
    found = [*_in_words(prompt), *_in_characters(prompt)]
    return tuple(
        Named("zh-Hant" if other_script and each.tag == "zh" else each.tag, each.target, each.source)
        for each in found
        if each.source or each.target is not None
    )


def _in_characters(prompt: str) -> Iterator[Named]:
    """Yield the languages named in scripts without spaces, and in Korean."""
    for match in _UNSPACED_NAME.finditer(prompt):
        before, behind = prompt[max(0, match.start() - 12) : match.start()], prompt[match.end() : match.end() + 12]
        into = before.rstrip(" 「『“\"'*").endswith(_INTO) or behind.lstrip(" 」』”\"'*").startswith(_INTO_BEHIND)
        yield Named(_NAME[match[0]], 0 if into else None, not into and behind.startswith(_FROM_BEHIND))


def _in_words(prompt: str) -> Iterator[Named]:
    """Yield the languages named in other scripts, and by tags."""
    end = 0
    for word in _WORD.finditer(prompt):
        if word.start() >= end and (found := _language_at(prompt, word.start())):
            tag, end = found
            yield _about(prompt, word.start(), end, tag)


def _language_at(prompt: str, start: int) -> tuple[str, int] | None:
    """Return the language whose name or tag begins at a place, and where that ends; None without one."""
    longest = _NAME_AT.match(prompt, start)
    words = longest[0].split(" ") if longest else []
    for length in range(len(words), 0, -1):
        name = " ".join(words[:length])
        if tag := _known(name):
            return tag, start + len(name)
    match = _TAG.match(prompt, start)
    # "de" is a word of several languages, so a code counts only as in "lang=de", '"de"' or "de-AT"
    if match is None or not (set("-_") & set(match[0]) or _SIGN.search(prompt, max(0, start - 5), start)):
        return None
    found = _canonical(match[0].replace("_", "-"))
    return (found, match.end()) if found else None


@cache
def _english() -> dict[str, str]:
    return {name: tag for name, tag in names().items() if len(name) >= 4}


def _known(name: str) -> str | None:
    folded = name.casefold()
    if tag := _FOREIGN.get(folded):
        return tag
    tag = _english().get(folded)
    # "to even" does not mean Even, but "to german" means German
    if tag is None or (name.islower() and len(tag.partition("-")[0]) != 2):
        return None
    return canonical_tag(tag)


@lru_cache(maxsize=1024)
def _canonical(tag: str) -> str | None:
    try:
        return parse_language(tag).canonical
    except OptionError:
        return None


def _about(prompt: str, start: int, end: int, tag: str) -> Named:
    """Return what the words around a name say about it."""
    name = prompt[start:end]
    mark, behind = _MARK.search(prompt, max(0, start - _NEAR), start), _BEHIND.match(prompt, end)
    before, between = (mark[1].casefold(), mark[2]) if mark else ("", "")
    words = _WORD.findall(behind[0]) if behind else []
    after = words[0].casefold() if words else ""
    foreign, lower = name.casefold() in _FOREIGN, name.islower()
    rank = 2 if foreign and before in _INTO_WORDS else _BEFORE.get(before)
    if before in ("into", "to") and lower and len(name) >= 4 and "-" not in name:
        rank = _LOWER
    if rank is None and after.startswith("translat") and not lower:
        rank = _TRANSLATOR
    source = before in ("from", "source") or (foreign and before in _FROM_WORDS)
    source = source or (before in ("the", "this", "following") and after in _SPOKEN)
    return Named(_with(tag, [*_WORD.findall(between), *words]), rank, source)


@lru_cache(maxsize=4096)
def _qualified(tag: str, word: str) -> str | None:
    try:
        return parse_language(f"{parse_language(tag).name} ({word})").canonical
    except OptionError:
        return None


def _with(tag: str, beside: list[str]) -> str:
    """Return a language with the script or territory that a word beside its name adds."""
    for word in beside:
        if word.casefold() in QUALIFIERS and (found := _qualified(tag, word.casefold())):
            return found
        if "-" in word and _TAG.fullmatch(word) and canonical_tag(word).partition("-")[0] == tag.partition("-")[0]:
            return canonical_tag(word)
    return tag
