"""What the passes of an update are spent on, told from its record.

The first pass of an update *verifies*: it runs the new source, and the draft if there is one.  Every later pass gives
one token beside the draft tokens that it accepts, and is counted by what that token is in the output, set against the
previous output of the segment:

    new      it is beyond the end of the previous output, since the source has grown; the end of the output too
    changed  it stands where the previous output had something else, or nothing
    again    the previous output has it too: the pass was wasted, for a better draft would have held it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from redraft.measure.eval.record import Record, Step

KINDS = ("verify", "new", "changed", "again")


def kinds(output: Sequence[int], previous: Sequence[int]) -> list[str]:
    """For every token of an output ``new``, ``changed`` or ``again``."""
    found = []
    for name, start, end, begins, ends in SequenceMatcher(None, previous, output, autojunk=False).get_opcodes():
        length = ends - begins
        if name == "equal":
            found += ["again"] * length
        else:
            # What replaces the previous output's end stands for as many of its tokens; the rest goes beyond them.
            changed = min(length, end - start) if end == len(previous) else length
            found += ["changed"] * changed + ["new"] * (length - changed)
    return found


def divide(step: Step, previous: Sequence[int]) -> Counter[str]:
    """The target passes of an update by kind (`KINDS`)."""
    if not step.passes:
        return Counter()
    of_tokens = kinds(step.tokens, previous)
    place, counted = step.passes[0].accepted + 1, Counter({"verify": 1})
    for each in step.passes[1:]:
        place += each.accepted
        # The end is no token of the output, and one that was cut as a loop has lost some.
        counted[of_tokens[place] if place < len(of_tokens) else "new"] += 1
        place += 1
    return counted


def division(records: Iterable[Record]) -> Counter[str]:
    """The target passes of all updates by kind."""
    counted: Counter[str] = Counter()
    for record in records:
        previous: tuple[int, ...] = ()
        for step in record.steps:
            counted += divide(step, previous)
            previous = step.tokens
    return counted
