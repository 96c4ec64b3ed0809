"""Compute an update's work after skipped updates, from a record without skipped ones."""

from __future__ import annotations

from collections.abc import Sequence

from redraft.decoding.types import common_prefix
from redraft.measure.eval.record import PassRecord, Step


def after_skipping(steps: Sequence[Step], previous: tuple[int, ...]) -> tuple[PassRecord, ...]:
    """Return the passes of the last of some updates, if the others before it were skipped.

    More of its prompt is then new, and of the draft only the common prefix with the output is accepted.

    Args:
        steps: the skipped updates, and the one that is translated.
        previous: ids of the last output before them.
    """
    asked = [step.passes for step in steps if step.passes]
    if len(steps) == 1 or not asked:
        return steps[-1].passes
    # If the last text repeats the one before it, the earlier one is translated now.
    first, *others = asked[-1]
    output = steps[-1].tokens
    kept = min(first.accepted, common_prefix(previous, output))
    lost = first.accepted - kept
    cached = min(passes[0].cached for passes in asked)
    first = first._replace(cached=cached, new=first.new + first.cached - cached, accepted=kept)
    # Tokens no longer accepted are decoded like the rest.
    pace = sum(1 + each.accepted for each in others) / len(others) if others else 1.0
    model = others[0] if others else PassRecord(first.cached + first.new, 1, 0, 0, 0)
    return (first, *others, *[model] * round(lost / pace))
