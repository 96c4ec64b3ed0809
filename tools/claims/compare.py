"""Building blocks of claims in `tools.claims`: comparisons of figures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TypeAlias

from redraft_bench.eval.columns import COLUMNS, named
from redraft_bench.eval.figures import Row

#: None for each comparison that holds; for others, a sentence with the rows and their values.
Compared: TypeAlias = Iterator[str | None]

_SIGNS = {
    "<": (operator.lt, "below"),
    "<=": (operator.le, "no higher than"),
    ">": (operator.gt, "above"),
    ">=": (operator.ge, "no lower than"),
    "==": (operator.eq, "exactly"),
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and the comparisons that test it."""

    text: str
    check: Callable[[Sequence[Row]], Compared]


def ranked(rows: Sequence[Row], sign: str, *fields: str) -> Compared:
    """Compare each row with the next one."""
    for first, second in pairwise(rows):
        yield from _compare(first, sign, second, fields)


def against(firsts: Iterable[Row], sign: str, seconds: Iterable[Row], *fields: str) -> Compared:
    """Compare each row of the first group with each of the second."""
    others = list(seconds)
    for first in firsts:
        for second in others:
            yield from _compare(first, sign, second, fields)


def _compare(first: Row, sign: str, second: Row, fields: Sequence[str]) -> Compared:
    test, words = _SIGNS[sign]
    for field in fields:
        a, b = first.get(field), second.get(field)
        if a is not None and b is not None:
            found = f"{COLUMNS[field].heading} of {named(first)} is {a}"
            yield None if test(a, b) else f"{found}, but should be {words} {b}, that of {named(second)}"


def bounded(rows: Iterable[Row], field: str, *, low: float = -inf, high: float = inf) -> Compared:
    """Compare each row's figure with inclusive bounds."""
    wanted = [f"{low:.4g} or more"] * (low > -inf) + [f"{high:.4g} or less"] * (high < inf)
    for row in rows:
        value = row.get(field)
        if isinstance(value, int | float):
            wrong = f"{COLUMNS[field].heading} of {named(row)} is {value}, but should be {' and '.join(wanted)}"
            yield None if low <= value <= high else wrong


def present(rows: Iterable[Row], field: str, ought: Callable[[Row], bool]) -> Compared:
    """Check that exactly the rows selected by ``ought`` have a figure."""
    for row in rows:
        if field in row:
            value, wanted = row[field], ought(row)
            wrong = (
                f"{COLUMNS[field].heading} of {named(row)} is {value}, but should be {'given' if wanted else 'absent'}"
            )
            yield None if (value is not None) == wanted else wrong
