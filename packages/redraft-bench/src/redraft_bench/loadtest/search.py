"""Search for the maximum number of talks that a server carries, by doubling and bisection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

#: Relative precision of the search; trials with the same number vary by more.
CLOSE = 1 / 32


async def greatest(carried: Callable[[int], Awaitable[bool]], first: int, most: int) -> int:
    """Return the approximate maximum that is carried, with precision `CLOSE`; 0 if not even 1 is.

    The search assumes that a number is carried if a larger one is; measurements near the maximum may contradict that.

    Args:
        carried: tries a number of talks; returns whether they were carried.
        first: number of the first trial.
        most: maximum number to try.
    """
    low, high = 0, min(first, most)
    while await carried(high):
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > max(1, CLOSE * low):
        middle = (low + high) // 2
        low, high = (middle, high) if await carried(middle) else (low, middle)
    return low
