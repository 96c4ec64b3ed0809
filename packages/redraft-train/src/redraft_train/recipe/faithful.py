"""Which pairs lose nothing: a model learns to drop numbers, names and ends from pairs that do.

The rules are those of `redraft_bench.eval.losses`.
"""

from __future__ import annotations

import re

from redraft.captions.sentence import ends_sentence, sentence_ends
from redraft_bench.eval.losses import lost
from redraft_bench.eval.numbers import numbers

#: Least length of a translation that is no summary, in letters and digits for each of the source's.
LEAST_LENGTH = {"de": 0.6, "zh": 0.17, "ja": 0.25}
#: Letters and digits of a source that need no translation.
SHORT = 12
#: Most sentences of a source for each of its translation's.
SENTENCES = 2
_DIGITS, _MONTH = re.compile(r"\d+"), re.compile(r"(\d+)月")


def ended(source: str, target: str, language: str) -> str:
    """Return a translation with a full stop if its source has one; interfaces and lists often lack it."""
    missing = source.endswith(".") and target[-1:].isalnum()
    return target + ("." if language == "de" else "。") if missing else target


def faithful(source: str, target: str, language: str) -> bool:
    """Whether a translation has the numbers, names and negation of its source, no other number, and its end."""
    if lost(source, target, target, language) or (ends_sentence(source) and not ends_sentence(target)):
        return False
    if len([*sentence_ends(source)]) > SENTENCES * max(1, len([*sentence_ends(target)])):
        return False
    least = LEAST_LENGTH[language] * (_letters(source) - SHORT)
    return _letters(target) >= least and not _invented(source, target)


def _invented(source: str, target: str) -> bool:
    """Whether a translation has a number in digits that the source has in no form; an hour may be counted to 24."""
    known = {0, 1, 2, *numbers(source, "en")}
    known |= {number + more for number in known for more in (12, 1)}
    known |= {int(found) for found in (*_DIGITS.findall(source), *_MONTH.findall(target))}
    return any(int(found) not in known and int(found) < 10_000 for found in _DIGITS.findall(target))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))
