"""Endless outputs: small models may repeat themselves after a word they do not know.  Loops are detected and escaped.

Detection works token by token on the decoded ids, so the result does not depend on the drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from redraft.decoding.types import NOTHING_BARRED, Asking, Barred, Output, Prompt

T = TypeVar("T")

#: Minimum repetitions and minimum tokens of a cycle that counts as a loop.
LEAST_ROUNDS, LEAST_TOKENS = 4, 24
#: Maximum number of loops to escape; the next one cuts the output.
MOST_ESCAPES = 3
#: A translation longer than this many tokens plus this many per prompt token counts as endless.
SHORTEST_LIMIT, LONGEST_RATIO = 16, 4


def longest_output(prompt: Prompt) -> int:
    """Return the maximum number of tokens of a translation before it counts as endless."""
    return SHORTEST_LIMIT + LONGEST_RATIO * (len(prompt.encoder) or len(prompt.ids))


def loop_at_end(output: Sequence[int]) -> int:
    """Return how many ids at the end of ``output`` repeat earlier ones in a loop; 0 without a loop.

    Without these ids, the output contains the cycle once.
    """
    longest = len(output) // LEAST_ROUNDS
    if len(output) < LEAST_TOKENS or output[-1] not in output[-1 - longest : -1]:
        return 0
    for cycle in range(1, longest + 1):
        if output[-1] != output[-1 - cycle]:
            continue
        rounds = max(LEAST_ROUNDS, -(-LEAST_TOKENS // cycle))
        start = len(output) - rounds * cycle
        if start >= 0 and all(output[place] == output[place + cycle] for place in range(start, len(output) - cycle)):
            return (rounds - 1) * cycle
    return 0


def out_of_loops(
    attempt: Callable[[tuple[int, ...], Barred], Asking[tuple[Output, T]]],
    draft: tuple[int, ...],
    barred: Barred = NOTHING_BARRED,
) -> Asking[tuple[Output, T]]:
    """Decode, and again for each loop in the output, with another token where the loop would start again.

    Args:
        attempt: decodes once, given a draft and the tokens that must not stand at some positions; stops at a loop.
        draft: draft of the first attempt.  The output before a loop is the draft of the next one.
        barred: what must not stand at some positions in any attempt.

    Returns:
        The last attempt, with the counts of all.
    """
    earlier, escapes = Output((), False), 0
    while True:
        found, more = yield from attempt(draft, barred)
        output = _added(found, earlier)
        place = len(output.tokens)
        if output.loop is None or place in barred or escapes == MOST_ESCAPES:
            return output, more
        draft, earlier, escapes = output.tokens, output, escapes + 1
        barred = {**barred, place: frozenset([output.loop])}


def _added(output: Output, earlier: Output) -> Output:
    """Return ``output`` with the counts of an earlier attempt added."""
    return replace(
        output,
        passes=output.passes + earlier.passes,
        drafted=output.drafted + earlier.drafted,
        accepted=output.accepted + earlier.accepted,
        draft_passes=output.draft_passes + earlier.draft_passes,
    )
