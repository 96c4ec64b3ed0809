"""Classify the target passes of an update by what they were needed for.

The first pass of an update *verifies*: it processes the new source and the draft, if any.  Each later pass generates
one token besides the draft tokens it accepts, and is classified by that token, compared with the segment's previous
output:

    new      beyond the end of the previous output, because the source has grown; also the end token
    changed  at a place where the previous output had another token or none
    again    also in the previous output: a better draft would have saved the pass
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from redraft_bench.eval.record import Record, Step

KINDS = ("verify", "new", "changed", "again")


def kinds(output: Sequence[int], previous: Sequence[int]) -> list[str]:
    """Classify each token of an output as ``new``, ``changed`` or ``again``."""
    found = []
    for name, start, end, begins, ends in SequenceMatcher(None, previous, output, autojunk=False).get_opcodes():
        length = ends - begins
        if name == "equal":
            found += ["again"] * length
        else:
            # If the end of the previous output was replaced, as many tokens are changed; the others are new.
            changed = min(length, end - start) if end == len(previous) else length
            found += ["changed"] * changed + ["new"] * (length - changed)
    return found


def divide(step: Step, previous: Sequence[int]) -> Counter[str]:
    """Count the target passes of an update by kind (`KINDS`)."""
    if not step.passes:
        return Counter()
    of_tokens = kinds(step.tokens, previous)
    place, counted = step.passes[0].accepted + 1, Counter({"verify": 1})
    for each in step.passes[1:]:
        place += each.accepted
        # The end token is not in the output, and an output cut at a loop is shorter.
        counted[of_tokens[place] if place < len(of_tokens) else "new"] += 1
        place += 1
    return counted


def division(records: Iterable[Record]) -> Counter[str]:
    """Count the target passes of all updates by kind."""
    counted: Counter[str] = Counter()
    for record in records:
        previous: tuple[int, ...] = ()
        for step in record.steps:
            counted += divide(step, previous)
            previous = step.tokens
    return counted
