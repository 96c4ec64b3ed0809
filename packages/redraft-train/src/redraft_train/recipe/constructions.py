"""Pairs made from patterns, for what people say and texts rarely have: greetings, times, spoken years, prices, turns.

A pattern has one form a language, and slots that are filled at random from tables with one column a language
(``constructions.txt``).  None of the sentences of the demo talk is among them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from redraft_train.recipe.corpus import LANGUAGES, Pair

#: A text in English and the target languages.
Row: TypeAlias = Sequence[str]
#: Index of a language in a row.
COLUMN = {"en": 0} | {language: place for place, language in enumerate(LANGUAGES, 1)}


def _tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of each table."""
    found: dict[str, list[list[str]]] = {}
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            rows = found[line.strip("[]")] = []
        elif not line.startswith("#"):
            rows.append([cell.strip() for cell in f"{line} ".split(" | ")])
    return found


_TABLES = _tables(Path(__file__).with_suffix(".txt").read_text("utf-8"))
MONTHS, PATTERNS, TURNS = (_TABLES[name] for name in ("months", "patterns", "turns"))

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(number: int) -> str:
    """Return a number from 0 to 999,999 as people say it."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = number % size
    return f"{in_words(number // size)} {name}" + (f" {in_words(rest)}" if rest else "")


def year_in_words(year: int) -> str:
    """Return a year from 1900 to 2099 as people say it, such as "twenty fifteen"."""
    century, rest = divmod(year, 100)
    if 2000 <= year < 2010:
        return in_words(year)
    if rest == 0:
        return f"{in_words(century)} hundred"
    return f"{in_words(century)} {'oh ' if rest < 10 else ''}{in_words(rest)}"


def _number(generator: random.Random) -> Row:
    number = generator.choice([*range(2, 100), *range(100, 1000, 50), *range(1000, 10000, 500), 21, 25, 42, 75, 90])
    digits = f"{number:,}" if number > 9999 else str(number)
    return (in_words(number) if generator.random() < 0.5 else digits, *(str(number),) * 3)


def _small(generator: random.Random) -> Row:
    number = generator.randrange(2, 13)
    german = "_ _ zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()[number]
    chinese = "_ _ 两 三 四 五 六 七 八 九 十 十一 十二".split()[number]
    if generator.random() < 0.5:
        return in_words(number), german, chinese, str(number)
    return (str(number),) * 4


def _year(generator: random.Random) -> Row:
    year = generator.choice([*range(1950, 2030), *range(2005, 2030)])
    spoken = year_in_words(year) if generator.random() < 0.7 else str(year)
    return spoken, str(year), f"{year}年", f"{year}年"


def _month_and_year(generator: random.Random) -> Row:
    month = generator.randrange(12)
    year = _year(generator)
    english, german = MONTHS[month]
    return (f"{english} {year[0]}", f"{german} {year[1]}", *(f"{year[place]}{month + 1}月" for place in (2, 3)))


def _date(generator: random.Random) -> Row:
    month, day = generator.randrange(12), generator.randrange(1, 29)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day not in (11, 12, 13) else 0, "th")
    english, german = MONTHS[month]
    said = generator.choice([f"{english} {day}", f"{english} {day}{ending}", f"the {day}{ending} of {english}"])
    return (said, f"{day}. {german}", *(f"{month + 1}月{day}日",) * 2)


def _clock(generator: random.Random) -> Row:
    """Return a time of day, with the German preposition left to the pattern."""
    hour, minute = (
        generator.randrange(1, 13),
        generator.choice([0, 0, 0, 5, 10, 15, 15, 20, 30, 30, 40, 45, 50, generator.randrange(1, 60)]),
    )
    words = in_words(hour)
    kind = generator.random()
    if minute == 0:
        said = f"{words} o'clock" if kind < 0.6 else f"{hour} o'clock"
        return said, f"{hour} Uhr", f"{hour}点", f"{hour}時"
    if minute == 30 and kind < 0.5:
        german = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()[hour % 12]
        return f"half past {words}", f"halb {german}", f"{hour}点半", f"{hour}時半"
    said = f"{words} {in_words(minute)}" if kind < 0.5 and minute >= 10 else f"{hour}:{minute:02}"
    return (
        said,
        f"{hour}:{minute:02} Uhr",
        f"{hour}点{minute}分" if minute >= 10 else f"{hour}点零{minute}分",
        (f"{hour}時{minute}分"),
    )


def _half_of_day(generator: random.Random) -> Row:
    """Return a time with morning or evening, such as "6pm"."""
    hour, late = generator.randrange(1, 12), generator.random() < 0.6
    mark = generator.choice(("pm", " p.m.", " PM") if late else ("am", " a.m.", " AM")).strip(".")
    chinese, japanese = ("下午", "午後") if late else ("上午", "午前")
    return f"{hour}{mark}", f"{hour + 12 * late} Uhr", f"{chinese}{hour}点", f"{japanese}{hour}時"


def _price(generator: random.Random) -> Row:
    number = generator.choice([*range(2, 100), 120, 150, 200, 250, 300, 500, 1000, 89, 99])
    sign, name, german, chinese, japanese = generator.choice(
        [("$", "dollars", "Dollar", "美元", "ドル"), ("€", "euros", "Euro", "欧元", "ユーロ")]
    )
    said = [f"{sign}{number}", f"{number} {name}", f"{in_words(number)} {name}"]
    return generator.choice(said), f"{number} {german}", f"{number}{chinese}", f"{number}{japanese}"


def _price_with_cents(generator: random.Random) -> Row:
    """Return a price such as "$4.75", half of them as people say it."""
    whole, cents = generator.randrange(1, 100), generator.choice([*range(5, 100, 5), 99, 49, 79])
    digits = f"{whole}.{cents:02}"
    if generator.random() < 0.5:
        said = [f"${digits}", f"{digits} dollars", f"{in_words(whole)} dollars and {in_words(cents)} cents"]
        german, chinese, japanese = "Dollar", f"{digits}美元", f"{digits}ドル"
    else:
        said = [f"€{digits}", f"{digits} euros", f"{in_words(whole)} euros and {in_words(cents)} cents"]
        german, chinese, japanese = "Euro", f"{digits}欧元", f"{digits}ユーロ"
    return generator.choice(said), f"{whole},{cents:02} {german}", chinese, japanese


def _decimal(generator: random.Random) -> Row:
    whole, rest = generator.randrange(0, 100), generator.randrange(1, 10)
    said = f"{in_words(whole)} point {in_words(rest)}" if generator.random() < 0.5 else f"{whole}.{rest}"
    return said, f"{whole},{rest}", f"{whole}.{rest}", f"{whole}.{rest}"


def _large(generator: random.Random) -> Row:
    """Return a number of thousands or millions."""
    if generator.random() < 0.5:
        number = generator.randrange(2, 900)
        said = f"{number if generator.random() < 0.5 else in_words(number)} million"
        chinese = f"{number // 100}亿{number % 100 * 100 or ''}{'万' if number % 100 else ''}"
        japanese = f"{number // 100}億{number % 100 * 100 or ''}{'万' if number % 100 else ''}"
        short = f"{number * 100}万"
        return said, f"{number} Millionen", *((chinese, japanese) if number >= 100 else (short, short))
    number = generator.choice([*range(1100, 10_000, 10), *range(10_000, 100_000, 500)])
    spoken = in_words(number) if generator.random() < 0.5 and number % 500 == 0 else f"{number:,}"
    return spoken, f"{number:_}".replace("_", "."), str(number), str(number)


def _digits(generator: random.Random) -> Row:
    """Return the number of a telephone, in groups."""
    sizes = generator.choice([(3, 4), (3, 3, 4), (2, 3, 3)])
    groups = ["".join(generator.choices("0123456789", k=size)) for size in sizes]
    return (generator.choice("- ").join(groups),) * 4


def _room(generator: random.Random) -> Row:
    """Return the number of a room or a line, of up to four digits."""
    return (str(generator.choice([*range(3, 100), *range(100, 1000), *range(1000, 9999)])),) * 4


def _age(generator: random.Random) -> Row:
    number = generator.randrange(3, 100)
    return (in_words(number) if generator.random() < 0.5 else str(number), *(str(number),) * 3)


#: Slot -> what fills it; all others are filled from the tables.
MADE: Mapping[str, Callable[[random.Random], Row]] = {
    "number": _number,
    "small": _small,
    "year": _year,
    "monthyear": _month_and_year,
    "date": _date,
    "clock": _clock,
    "time": _half_of_day,
    "price": _price,
    "age": _age,
    "cents": _price_with_cents,
    "decimal": _decimal,
    "large": _large,
    "digits": _digits,
    "room": _room,
}


def made(generator: random.Random) -> Iterator[tuple[str, Pair]]:
    """Yield pairs of one text for each language that its pattern has."""
    kind = generator.random()
    if kind < 0.12:
        row: Row = generator.choice(TURNS)
    elif kind < 0.24:
        row = _two_clauses(generator)
    elif kind < 0.28:
        row = _fragment(generator)
    else:
        row = _filled(generator.choice(PATTERNS), generator)
    for language in LANGUAGES:
        if target := row[COLUMN[language]]:
            yield language, Pair(_capital(row[0]), _capital(target), language, 1.0, "constructions")


def _filled(pattern: Row, generator: random.Random) -> Row:
    """Fill the slots of a pattern."""
    values = {
        name: MADE[name](generator) if name in MADE else generator.choice(_TABLES[name]) for name in _slots(pattern[0])
    }
    return [
        form.format_map({name: row[place] for name, row in values.items()}) if form else ""
        for place, form in enumerate(pattern)
    ]


@cache
def _slots(form: str) -> tuple[str, ...]:
    return tuple(part.split("}")[0] for part in form.split("{")[1:])


def _two_clauses(generator: random.Random) -> Row:
    """Return a sentence of two clauses; a third of the English ones have no comma, as recognisers leave it out."""
    first, second = generator.choice(_TABLES["first clause"]), generator.choice(_TABLES["main clause"])
    comma = "" if generator.random() < 0.35 else ","
    return [
        f"{first[0]}{comma} {second[0]}.",
        f"{first[1]}, {second[1]}.",
        f"{first[2]}，{second[2]}。",
        f"{first[3]}、{second[3]}。",
    ]


def _fragment(generator: random.Random) -> Row:
    """Return a clause that stands alone as people leave it, such as "When I came home"."""
    return [f"{form}{mark}" for form, mark in zip(generator.choice(_TABLES["first clause"]), "..。。", strict=True)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def constructions(number: int, seed: int = 0) -> dict[str, list[Pair]]:
    """Return about ``number`` different pairs a language."""
    generator = random.Random(seed)
    found: dict[str, dict[str, Pair]] = {language: {} for language in LANGUAGES}
    for _ in range(20 * number):
        for language, pair in made(generator):
            found[language].setdefault(pair.source, pair)
        if all(len(of) >= number for of in found.values()):
            break
    return {language: list(of.values()) for language, of in found.items()}
