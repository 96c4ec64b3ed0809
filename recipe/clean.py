"""Cleans sentence pairs: one spelling of digits, quotation marks and script, and nothing that is misaligned.

A pair is dropped when its translation is in the wrong script, holds Latin words that its source does not hold, or has
a length that no translation of its source has.  A small model repeats such pairs: a stray word in one caption in ten
comes from a stray word in one training pair in a hundred.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Protocol

#: Smallest and largest number of target characters per source character.  Short sources vary more.
LENGTH_RATIOS = {"de": (0.5, 2.4), "zh": (0.12, 0.9), "ja": (0.18, 1.3)}
#: Characters added to both sides before the ratio is taken, so that short sources may vary.
SLACK = 8

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\u3005\u3007]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'’-]*")
_FOREIGN = re.compile(r"[\u0400-\u04ff\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\uac00-\ud7af]")
#: Full-width letters and digits, half-width katakana: the ranges whose compatibility forms are the common spelling.
_WIDE = re.compile(r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f]+")
_SPACES = re.compile(r"\s+")
#: Half-width marks behind a Chinese or Japanese character.
_MARKS = str.maketrans({",": "，", ".": "。", "?": "？", "!": "！", ":": "：", ";": "；"})
_HALF_MARK = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])[,.?!:;]")
_EAST_ASIAN_GAP = re.compile(
    r"(?<=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]) (?=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])"
)
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": "..."})


def clean(source: str, target: str, language: str) -> tuple[str, str] | None:
    """The pair in one spelling, or None if it is not usable.

    Args:
        source: English text.
        target: its translation.
        language: code of the target language: de, zh or ja.
    """
    source = _SPACES.sub(" ", source).strip().translate(_STRAIGHT)
    target = _SPACES.sub(" ", target).strip()
    target = german(target) if language == "de" else east_asian(target, language)
    return (source, target) if usable(source, target, language) else None


def german(text: str) -> str:
    """German with „…“ for all double quotation marks and a plain apostrophe."""
    text = text.replace("’", "'").replace("»", "„").replace("«", "“").replace("…", "...")
    if text.count('"') % 2 == 0:
        text = re.sub(r'"([^"]*)"', r"„\1“", text)
    return re.sub(r"“([^“”„]*)”", r"„\1“", text)


def east_asian(text: str, language: str) -> str:
    """Chinese or Japanese with half-width digits and letters, full-width marks, and simplified characters."""
    text = _WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    marks = _MARKS | {ord(","): "、"} if language == "ja" else _MARKS
    text = _HALF_MARK.sub(lambda found: found[0].translate(marks), text)
    text = _EAST_ASIAN_GAP.sub("", text)
    quotes = "「」" if language == "ja" else "“”"
    if text.count('"') % 2 == 0:
        text = re.sub(r'"([^"]*)"', rf"{quotes[0]}\1{quotes[1]}", text)
    return simplified().convert(text) if language == "zh" else text


class Converter(Protocol):
    """What this module needs of OpenCC."""

    def convert(self, text: str) -> str:
        """The text in the other script."""


@cache
def simplified() -> Converter:
    """The converter from traditional to simplified characters."""
    from opencc import OpenCC  # only Chinese text needs it

    converter: Converter = OpenCC("t2s")
    return converter


def usable(source: str, target: str, language: str) -> bool:
    """Whether a pair's script and length are those of a translation."""
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
    """The Latin words of a Chinese or Japanese text that are not in its source; single letters are let through."""
    known = {word.lower() for word in _LATIN_WORD.findall(source)}
    joined = "".join(sorted(known)) + source.lower()
    return [word for word in _LATIN_WORD.findall(target) if len(word) > 1 and word.lower() not in joined]
