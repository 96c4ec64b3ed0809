"""Numbers in a text: digits, and numbers written as words or Chinese characters."""

from __future__ import annotations

import re
from functools import cache

_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_TEN_THOUSANDS = re.compile(r"(\d+)万")
_HAN = re.compile(r"[〇零一二两三四五六七八九十百千万]+")
_HAN_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"[^\W\d_]+|[^\w\s]|\d+")
_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_ENGLISH_TENS = dict(
    zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True)
)
_GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
).split()
_GERMAN_TENS = ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]


def numbers(text: str, language: str) -> list[int]:
    """Return the whole numbers of a text in a language, ``en``, ``de``, ``zh`` or ``ja``, in their order.

    A time or a decimal gives the numbers on both sides of its mark; separators of thousands are left out.
    """
    found: list[tuple[int, int]] = []
    if language in ("zh", "ja"):
        text = _TEN_THOUSANDS.sub(lambda match: f"{match[1]}0000", text)
    for match in _DIGITS.finditer(text):
        joined = re.sub(r"[.,](?=\d{3}(?!\d))", "", match[0])
        found += [(match.start(), int(part)) for part in re.split(r"[.,:]", joined)]
    if language in ("zh", "ja"):
        found += [(match.start(), _from_han(match[0])) for match in _HAN.finditer(text)]
    elif language == "de":
        words = _german()
        found += [(each.start(), words[word]) for each in _WORD.finditer(text) if (word := each[0].casefold()) in words]
    else:
        found += _from_english(text)
    return [number for _, number in sorted(found, key=lambda each: each[0])]


def _from_han(text: str) -> int:
    if not set(text) & {*_HAN_UNITS, "万"}:  # one digit after the other, as in years
        return int("".join(str(_HAN_DIGITS[character]) for character in text))
    total, part, digit = 0, 0, -1
    for character in text:
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
        elif character == "万":
            total, part, digit = (part + max(0, digit) or 1) * 10_000, 0, -1
        else:
            part, digit = part + (1 if digit < 0 else digit) * _HAN_UNITS[character], -1
    return total + part + max(0, digit)


@cache
def _german() -> dict[str, int]:
    small = _GERMAN
    words = dict(zip(small, range(20), strict=True)) | {"eins": 1}
    for ten, name in enumerate(_GERMAN_TENS):
        if name:
            words |= {f"{small[one]}und{name}" if one else name: 10 * ten + one for one in range(10)}
    below = dict(words)
    for hundred in range(1, 10):
        for begin in [f"{small[hundred]}hundert"] + ["hundert"] * (hundred == 1):
            words |= {begin: 100 * hundred} | {begin + rest: 100 * hundred + value for rest, value in below.items()}
    thousands = {f"{small[number]}tausend": 1000 * number for number in range(1, 13)} | {"tausend": 1000}
    words |= thousands
    del words["ein"]  # an article
    return words


def _from_english(text: str) -> list[tuple[int, int]]:
    """Return places and values; "twenty fifteen" is a year."""
    found: list[tuple[int, int]] = []
    run: list[str] = []
    place = 0
    for match in _TOKEN.finditer(f"{text}."):
        word = match[0].casefold()
        if word in _ENGLISH or word in _ENGLISH_TENS or (run and word in ("hundred", "thousand", "oh")):
            place = place if run else match.start()
            run.append(word)
        elif run and word != "-" and not (word == "and" and run[-1] in ("hundred", "thousand")):
            found += [(place, value) for value in _english(run)]
            run = []
    return found


def _english(words: list[str]) -> list[int]:
    """Return the values of a run of number words; "oh" is a zero in years."""
    if len(words) == 3 and words[1] == "oh":
        return [100 * _english(words[:1])[0] + _english(words[2:])[0]]
    values: list[int] = []
    total = part = 0
    last = 0  # size of the word before: 1, 10, or more
    for word in (each for each in words if each != "oh"):
        if word == "hundred":
            part, last = (part or 1) * 100, 100
        elif word == "thousand":
            total, part, last = total + (part or 1) * 1000, 0, 1000
        else:
            number = _ENGLISH_TENS.get(word, 0) or _ENGLISH.index(word)
            fits = last >= 100 or last == 0 or (last == 10 and number < 10)
            if not fits:
                values.append(total + part)
                total = part = 0
            part += number
            last = 10 if word in _ENGLISH_TENS else 1
    values.append(total + part)
    year = len(values) == 2 and values[0] in (18, 19, 20, 21) and 9 < values[1] < 100
    return [values[0] * 100 + values[1]] if year else values
