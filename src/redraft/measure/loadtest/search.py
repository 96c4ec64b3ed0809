"""The greatest number of talks that a server carries: by doubling, then by halving the distance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

#: Numbers that differ by less than this part of them are not told apart: two trials of one number differ by more.
CLOSE = 1 / 32


async def greatest(carried: Callable[[int], Awaitable[bool]], first: int, most: int) -> int:
    """About the greatest number that is carried, `CLOSE` to it, 0 if not even 1 is.

    What is carried is taken to be carried with fewer talks, too; measurements near the limit may say otherwise.

    Args:
        carried: tries a number of talks.
        first: the number that is tried first.
        most: more are not tried.
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
