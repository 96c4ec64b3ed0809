"""What an update asks of the model if updates before it were left out, worked out from a record in which none was."""

from __future__ import annotations

from collections.abc import Sequence

from redraft.decoding.types import common_prefix
from redraft.measure.eval.record import PassRecord, Step


def after_skipping(steps: Sequence[Step], previous: tuple[int, ...]) -> tuple[PassRecord, ...]:
    """The passes of the last of some updates, if the others before it were left out.

    More of its prompt is new then, and of the draft only as much is kept as it has in common with the output.

    Args:
        steps: those that were left out, and the one that is translated.
        previous: ids of the last output before them.
    """
    asked = [step.passes for step in steps if step.passes]
    if len(steps) == 1 or not asked:
        return steps[-1].passes
    # If the last text is the one before it again, it is the earlier one that is translated now.
    first, *others = asked[-1]
    output = steps[-1].tokens
    kept = min(first.accepted, common_prefix(previous, output))
    lost = first.accepted - kept
    cached = min(passes[0].cached for passes in asked)
    first = first._replace(cached=cached, new=first.new + first.cached - cached, accepted=kept)
    # What is no longer kept is decoded as the rest was.
    pace = sum(1 + each.accepted for each in others) / len(others) if others else 1.0
    model = others[0] if others else PassRecord(first.cached + first.new, 1, 0, 0, 0)
    return (first, *others, *[model] * round(lost / pace))
