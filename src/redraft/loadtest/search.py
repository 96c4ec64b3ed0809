"""The greatest number of talks that a server carries: by doubling, then by halving the distance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def greatest(carried: Callable[[int], Awaitable[bool]], most: int) -> int:
    """The greatest number that is carried, 0 if not even 1 is.

    What is carried is taken to be carried with fewer talks, too; measurements near the limit may say otherwise.

    Args:
        carried: tries a number of talks.
        most: more are not tried.
    """
    low, high = 0, 1
    while await carried(high):
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if await carried(middle) else (low, middle)
    return low
