"""The languages that prompts name.

Names are looked up word by word in one table, and the words around them say what is meant.  Time grows in proportion to
the length of a prompt.  Names in other languages than English are those that tools are most often set to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

from redraft.captions.languages import QUALIFIERS, canonical_tag, names, parse_language
from redraft.errors import OptionError

#: Maximum number of words of a name, of words that may be left out before it, and of words beside it.
_WORDS, _LEFT_OUT, _BESIDE = 3, 2, 6
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_TAG = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,4}){0,2}")
#: Number of characters at the beginning and at the end of a prompt that are searched.
_START, _END = 4000, 2000
#: What may stand between words that belong together.
_GAP = re.compile(r"(?:_|[^\w.!?;。！？；]){1,4}")
#: Words about the script of Chinese elsewhere in a prompt.
_TRADITIONAL = re.compile(r"traditional (?:chinese|characters|script|hanzi|mandarin)|繁體|繁体|正體", re.IGNORECASE)
_SIMPLIFIED = re.compile(r"simplified (?:chinese|characters|script|hanzi|mandarin)|简体|簡體", re.IGNORECASE)

#: Word before a name -> how plainly it marks the target language, lowest first.
_BEFORE = {"into": 0, "target": 1, "tgt": 1, "to": 2, "in": 3, "as": 3}
#: The rank of "a German translator", and of names in lower case.
_TRANSLATOR, _LOWER = 4, 5
#: Ranks from this one on may also name another language: "Answer in English.", "a German translator".
VAGUE = 3
_SKIPPED = {"the", "language", "lang", "is"}
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


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a prompt, and the text between each and the one before."""

    words: list[str]
    gaps: list[str]

    def near(self, place: int) -> bool:
        """Whether a word belongs to the one before."""
        return 0 < place < len(self.words) and _GAP.fullmatch(self.gaps[place]) is not None


def _split(prompt: str) -> _Words:
    words, gaps, end = list[str](), list[str](), 0
    for match in _WORD.finditer(prompt):
        words.append(match[0])
        gaps.append(prompt[end : match.start()][-5:])
        end = match.end()
    return _Words(words, gaps)


def _in_words(prompt: str) -> Iterator[Named]:
    found, place = _split(prompt), 0
    while place < len(found.words):
        tag, length = _language_at(found, place)
        if tag is not None:
            yield _about(found, place, length, tag)
        place += max(1, length)


def _language_at(found: _Words, place: int) -> tuple[str | None, int]:
    """Return the language whose name or tag begins at a place, and its number of words; None and 0 without one."""
    for length in range(min(_WORDS, len(found.words) - place), 0, -1):
        words = found.words[place : place + length]
        if not all(gap == " " for gap in found.gaps[place + 1 : place + length]):
            continue
        if tag := _known(" ".join(words)):
            return tag, length
    word = found.words[place]
    if found.gaps[place + 1 : place + 2] == ["_"] and len(found.words[place + 1]) in (2, 4):
        word = f"{word}-{found.words[place + 1]}"
    is_tag = _TAG.fullmatch(word) and ("-" in word or found.gaps[place].strip(" *")[-1:] in (":", "=", "[", '"', "'"))
    return (canonical_tag(word), 1) if is_tag and _is_language(word) else (None, 0)


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
def _is_language(tag: str) -> bool:
    try:
        parse_language(tag)
    except OptionError:
        return False
    return True


def _about(found: _Words, place: int, length: int, tag: str) -> Named:
    """Return what the words around a name say about it."""
    lower, foreign = found.words[place].islower(), found.words[place].casefold() in _FOREIGN
    before, beside = _words_before(found, place)
    qualified = _with(tag, [*beside, *_words_behind(found, place + length)])
    after = found.words[place + length].casefold() if found.near(place + length) else ""
    if foreign:
        return Named(tag, 2 if before in _INTO_WORDS else None, before in _FROM_WORDS)
    rank = _BEFORE.get(before)
    if rank is not None and lower and "-" not in found.words[place] and before in ("into", "to"):
        rank = _LOWER if len(found.words[place]) >= 4 else rank
    if rank is None and after.startswith("translat") and not lower:
        rank = _TRANSLATOR
    source = before in ("from", "source") or (before in ("the", "this", "following") and after in _SPOKEN)
    return Named(qualified, rank, source)


def _words_before(found: _Words, place: int) -> tuple[str, list[str]]:
    """Return the word that says what a name is for, and the words between that belong to the name."""
    beside: list[str] = []
    left = _LEFT_OUT + 2
    while left and found.near(place):
        place, left = place - 1, left - 1
        word = found.words[place].casefold()
        if word in _BEFORE or word in _INTO_WORDS or word in _FROM_WORDS or word in ("from", "source"):
            return word, beside
        if word in _SKIPPED:
            if word == "the" and (not found.near(place) or found.words[place - 1].casefold() not in _MARKS):
                return word, beside
            continue
        if word in ("this", "following"):
            return word, beside
        if not (found.words[place][:1].isupper() or word in QUALIFIERS):
            return "", beside
        beside.append(word)
    return "", beside


_MARKS = {*_BEFORE, "from", "source"}


def _words_behind(found: _Words, place: int) -> list[str]:
    """Return the words behind a name that may qualify it: in brackets, or behind a comma."""
    if place >= len(found.words) or not found.near(place):
        return []
    bracket = any(each in found.gaps[place] for each in "([（")
    behind = [found.words[place]]
    for each in islice(range(place + 1, len(found.words)), _BESIDE if bracket else 0):
        if any(end in found.gaps[each] for end in ")]）") or not found.near(each):
            break
        behind.append(found.words[each])
    return behind


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
