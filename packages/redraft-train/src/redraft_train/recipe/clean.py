"""Clean sentence pairs: unify digits, quotation marks and script, and drop misaligned pairs.

A pair is dropped if its translation is in the wrong script, contains Latin words that are not in its source, or has an
implausible length.  A small model repeats such errors: a stray word in one training pair in a hundred causes a stray
word in one caption in ten.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Protocol

#: Minimum and maximum number of target characters per source character.
LENGTH_RATIOS = {"de": (0.5, 2.4), "zh": (0.12, 0.9), "ja": (0.18, 1.3)}
#: Characters added to both sides before computing the ratio, so that short sources may vary more.
SLACK = 8

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\u3005\u3007]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'’-]*")
_FOREIGN = re.compile(r"[\u0400-\u04ff\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\uac00-\ud7af]")
#: Full-width letters and digits, half-width katakana; their compatibility forms are the common ones.
_WIDE = re.compile(r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f]+")
_SPACES = re.compile(r"\s+")
#: Half-width marks after a Chinese or Japanese character.
_MARKS = str.maketrans({",": "，", ".": "。", "?": "？", "!": "！", ":": "：", ";": "；"})
_HALF_MARK = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])[,.?!:;]")
_EAST_ASIAN_GAP = re.compile(
    r"(?<=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]) (?=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])"
)
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "..."})


def clean(source: str, target: str, language: str) -> tuple[str, str] | None:
    """Return the pair in unified spelling, or None if it is not usable."""
    source = _SPACES.sub(" ", source).strip().translate(_STRAIGHT)
    target = _SPACES.sub(" ", target).strip()
    target = german(target) if language == "de" else east_asian(target, language)
    return (source, target) if usable(source, target, language) else None


def german(text: str) -> str:
    """Use „…“ for all double quotation marks, and a plain apostrophe."""
    text = text.replace("’", "'").replace("»", "„").replace("«", "“").replace("…", "...")
    if text.count('"') % 2 == 0:
        text = re.sub(r'"([^"]*)"', r"„\1“", text)
    return re.sub(r"“([^“”„]*)”", r"„\1“", text)


def east_asian(text: str, language: str) -> str:
    """Use half-width digits and letters, full-width marks, and simplified characters."""
    text = _WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    marks = _MARKS | {ord(","): "、"} if language == "ja" else _MARKS
    text = _HALF_MARK.sub(lambda found: found[0].translate(marks), text)
    text = _EAST_ASIAN_GAP.sub("", text)
    quotes = "「」" if language == "ja" else "“”"
    if text.count('"') % 2 == 0:
        text = re.sub(r'"([^"]*)"', rf"{quotes[0]}\1{quotes[1]}", text)
    return simplified().convert(text) if language == "zh" else text


class Converter(Protocol):
    """The interface that this module needs from OpenCC."""

    def convert(self, text: str) -> str:
        """Return the text in the other script."""


@cache
def simplified() -> Converter:
    """Return the converter from traditional to simplified characters."""
    from opencc import OpenCC  # only Chinese needs it

    converter: Converter = OpenCC("t2s")
    return converter


def usable(source: str, target: str, language: str) -> bool:
    """Whether script and length of a pair are plausible for a translation."""
    if not source or not target or _FOREIGN.search(target):
        return False
    low, high = LENGTH_RATIOS[language]
    if not low <= (len(target) + SLACK * (low + high) / 2) / (len(source) + SLACK) <= high:
        return False
    if language == "de":
        return not (_HAN.search(target) or _KANA.search(target))
    if not (_HAN.search(target) or _KANA.search(target)) or (language == "zh" and _KANA.search(target)):
        return False
    return stray_words(source, target) == []


def stray_words(source: str, target: str) -> list[str]:
    """Return the Latin words of a Chinese or Japanese text that are not in its source, except for single letters."""
    known = {word.lower() for word in _LATIN_WORD.findall(source)}
    joined = "".join(sorted(known)) + source.lower()
    return [word for word in _LATIN_WORD.findall(target) if len(word) > 1 and word.lower() not in joined]
