"""Detect repetitive outputs: small models may repeat themselves endlessly after a word they do not know.

Detection works token by token on the decoded ids, so the result does not depend on the drafts.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Minimum repetitions and minimum tokens of a cycle that counts as a loop.
LEAST_ROUNDS, LEAST_TOKENS = 4, 24


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
