"""Pairs with other numbers than the corpus has, so that a model learns to keep any."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from redraft_bench.eval.numbers import numbers
from redraft_train.recipe.constructions import in_words, year_in_words
from redraft_train.recipe.corpus import Pair

#: Numbers of digits alone that may be exchanged: no decimals, times or parts of words.
_ALONE = re.compile(r"(?<![\w.,:/'-])\d{1,4}(?![\w.,:/'-]*[\w/'-])")
#: Numbers up to each of these are exchanged for others up to it: hours, days, minutes, ages.
_CLASSES = (12, 28, 59, 99)
#: Share of exchanged numbers that are written as words.
WORDS = 0.4


def renumbered(pair: Pair, generator: random.Random) -> Pair:
    """Return a pair with other numbers of about the same size, a part of them written as words in the source.

    Only numbers from 3 on that both sides have once, in digits, are exchanged; the pair is returned as it is if there
    are none.
    """
    source, target = pair.source, pair.target
    values = [*numbers(source, "en")]
    for found in [*_ALONE.finditer(source)][::-1]:
        old = found[0]
        alone = rf"(?<![\d.,:]){old}(?![\d.,:]*\d)"
        if int(old) < 3 or values.count(int(old)) > 1 or len(re.findall(alone, target)) != 1:
            continue
        number = another(int(old), generator)
        written = str(number)
        if generator.random() < WORDS and source[found.end() : found.end() + 1] != "%":
            written = year_in_words(number) if 1900 <= number < 2100 else in_words(number)
            written = written if found.start() else written.capitalize()
        source = source[: found.start()] + written + source[found.end() :]
        target = re.sub(alone, str(number), target)
    return replace(pair, source=source, target=target)


def another(number: int, generator: random.Random) -> int:
    """Return a number of the same kind: an hour, a day, a year, or one of as many digits."""
    low = 3
    for high in _CLASSES:
        if number <= high:
            return generator.randint(low, high)
        low = high + 1
    if 1900 <= number < 2100:
        return generator.randint(1900, 2035)
    digits = len(str(number))
    other = generator.randrange(10 ** (digits - 1), 10**digits)
    round_to = next(power for power in (1000, 100, 10, 1) if number % power == 0)
    return max(other - other % round_to, 10 ** (digits - 1))
