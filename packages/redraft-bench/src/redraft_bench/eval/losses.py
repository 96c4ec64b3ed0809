"""What a translation of an utterance has lost, counted by a program: everything, its end, a number, name or negation.

Each rule is one that good references follow (`redraft_bench.eval.spoken` takes only pairs whose reference does), so a
count of zero can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redraft.captions.sentence import ends_sentence
from redraft_bench.eval.numbers import numbers

#: Least length of a translation relative to its reference, in letters and digits.
LEAST_LENGTH = 0.35
#: English name -> Chinese and Japanese; further spellings of a language are separated by a bar.
NAMES = {
    "Alice": ("爱丽丝|艾丽斯|爱丽斯", "アリス"),
    "America": ("美国|美洲", "アメリカ|米国"),
    "Australia": ("澳大利亚|澳洲", "オーストラリア"),
    "Bill": ("比尔", "ビル"),
    "Bob": ("鲍勃|鲍伯", "ボブ"),
    "Boston": ("波士顿", "ボストン"),
    "China": ("中国", "中国"),
    "David": ("大卫|戴维", "デイビッド|デヴィッド|デビッド|ダビデ"),
    "England": ("英国|英格兰|英国", "イギリス|英国|イングランド"),
    "Europe": ("欧洲", "ヨーロッパ|欧州"),
    "France": ("法国", "フランス"),
    "Germany": ("德国", "ドイツ"),
    "Jack": ("杰克", "ジャック"),
    "Jane": ("简|珍妮|珍", "ジェーン"),
    "Japan": ("日本", "日本"),
    "Jim": ("吉姆", "ジム"),
    "John": ("约翰", "ジョン"),
    "Kate": ("凯特", "ケイト"),
    "Ken": ("肯", "ケン|健"),
    "Kyoto": ("京都", "京都"),
    "London": ("伦敦", "ロンドン"),
    "Lucy": ("露西", "ルーシー"),
    "Mary": ("玛丽|马丽|瑪麗", "メアリー|メアリ|マリア|メリー"),
    "Mike": ("迈克|麦克", "マイク"),
    "Nancy": ("南希", "ナンシー"),
    "Osaka": ("大阪", "大阪"),
    "Paris": ("巴黎", "パリ"),
    "Paul": ("保罗", "ポール"),
    "Peter": ("彼得", "ピーター"),
    "Russia": ("俄罗斯|俄国", "ロシア"),
    "Tokyo": ("东京", "東京"),
    "Tom": ("汤姆|湯姆", "トム"),
}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]{2,}")
_HAN, _KANA = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"), re.compile(r"[\u3041-\u30fa]")
_NEGATED = re.compile(r"\b(not|never|no|nobody|nothing|none|nowhere|neither|cannot)\b|n't\b", re.IGNORECASE)
_NEGATION = {
    "de": re.compile(
        r"\b(nicht\w*|kein\w*|nie\w*|nein|nirgend\w*|weder|ohne|un\w+|außer|kaum|weg|lass\w*)\b|los\b|frei\b", re.I
    ),
    "zh": re.compile(r"[不没别未无非勿否莫沒無别難难]"),
    "ja": re.compile(
        r"な[いくかけしさ]|ません|ず|ぬ|いいえ|[無不未非否違嫌]|まい|[るうくす]な|ダメ|だめ|駄目|いや|ねえ|ねぇ|ん[。！？だでよじ]"
    ),
}
_HALF_PAST = re.compile(r"\bhalf past\b|\bquarter to\b|\b\d+ to \d", re.IGNORECASE)

#: What translations may lose, as columns of a table.
LOSSES = ("empty", "cut_short", "number_lost", "name_lost", "negation_lost", "wrong_language")


def empty(translation: str) -> bool:
    """Whether a translation has no letter or digit."""
    return not any(map(str.isalnum, translation))


def cut(translation: str, reference: str) -> bool:
    """Whether a translation, which is not empty, lacks its end.

    It has no mark at its end and the reference has one, or it is much shorter than the reference.
    """
    mark = ends_sentence(reference) and not ends_sentence(translation)
    return not empty(translation) and (mark or _letters(translation) < LEAST_LENGTH * _letters(reference))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def has_number(source: str) -> bool:
    """Whether a source has a number that a translation must keep; one and two are often other words in it."""
    return any(number > 2 for number in numbers(source, "en"))


def number_lost(source: str, translation: str, language: str) -> bool:
    """Whether a number of the source is missing.  Hours may be counted to 24, and half an hour before the next one."""
    kept = set(numbers(translation, language))
    more = 1 if _HALF_PAST.search(source) else 0
    return any(
        number > 2 and not kept & {number, number + 12, number + more, number % 12 + more if more else number}
        for number in numbers(source, "en")
    )


def names(source: str) -> list[str]:
    """Return the names of `NAMES` in a source."""
    return [word for found in _WORD.finditer(source) if (word := found[0].removesuffix("'s")) in NAMES]


def name_lost(source: str, translation: str, language: str) -> bool:
    """Whether a name of `NAMES` is missing; in German its stem, elsewhere it may also stay in Latin letters."""
    for name in names(source):
        stem = {"America": "Amerika", "Germany": "D", "France": "Fran", "Russia": "Russ", "Japan": "Japan"}.get(name)
        stem = stem or {"Europe": "Euro", "Australia": "Austral", "Tokyo": "T", "Kyoto": "K"}.get(name, name)
        forms = [stem] if language == "de" else [name, *NAMES[name][("zh", "ja").index(language)].split("|")]
        if not any(form in translation for form in forms):
            return True
    return False


def wrong_language(source: str, translation: str, language: str) -> bool:
    """Whether a translation is in another language or script: another one's characters, or words of no source."""
    if empty(translation):
        return False
    if language == "de":
        copied = translation.casefold().split() == source.casefold().split() and len(source.split()) > 2
        return bool(_HAN.search(translation) or _KANA.search(translation)) or copied
    if language == "zh" and _KANA.search(translation):
        return True
    written = _HAN.search(translation) or _KANA.search(translation)
    known = source.casefold()
    strays = [word for word in _LATIN.findall(translation) if word.casefold() not in known]
    return bool(strays) or not (written or numbers(translation, language))


def negated(source: str) -> bool:
    """Whether a source has a negation."""
    return bool(_NEGATED.search(source))


def negation_lost(source: str, translation: str, language: str) -> bool:
    """Whether the negation of a source is missing."""
    return negated(source) and not _NEGATION[language].search(translation)


def lost(source: str, translation: str, reference: str, language: str) -> frozenset[str]:
    """Return which of `LOSSES` a translation has."""
    found = {
        "empty": empty(translation),
        "cut_short": cut(translation, reference),
        "number_lost": has_number(source) and number_lost(source, translation, language),
        "name_lost": name_lost(source, translation, language),
        "negation_lost": negation_lost(source, translation, language),
        "wrong_language": wrong_language(source, translation, language),
    }
    return frozenset(name for name, is_so in found.items() if is_so)


def losses(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str], language: str
) -> dict[str, int]:
    """Count the translations that are empty or have lost something, and the sources with a number, name or negation.

    A translation without any letters counts as empty, and with what it has lost too.
    """
    each = [lost(*row, language) for row in zip(sources, translations, references, strict=True)]
    return {
        **{name: sum(name in found for found in each) for name in LOSSES},
        "with_number": sum(map(has_number, sources)),
        "with_name": sum(bool(names(source)) for source in sources),
        "with_negation": sum(map(negated, sources)),
    }
