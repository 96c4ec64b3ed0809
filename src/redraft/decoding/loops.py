"""Outputs that go round in circles: small models repeat themselves for ever where they do not know a word.

A loop is found on the ids decoded so far, token by token, so it is found at the same place whatever was drafted.
"""

from __future__ import annotations

from collections.abc import Sequence

#: A cycle is a loop when it has come round this often and fills this many tokens.
LEAST_ROUNDS, LEAST_TOKENS = 4, 24


def loop_at_end(output: Sequence[int]) -> int:
    """How many ids at the end of ``output`` repeat what stands before them, or 0 if it does not end in a loop.

    Without these ids the output has its cycle once.
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
