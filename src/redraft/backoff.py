"""Delays between attempts to reach a server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between attempts to reconnect, in seconds; they double each time, with random variation.

    Attributes:
        patience: give up after this long without a connection.
    """

    first: float = 0.2
    longest: float = 10.0
    patience: float = 300.0

    def waits(self) -> Iterator[float]:
        """Yield the delays until patience runs out; random variation keeps clients from reconnecting simultaneously."""
        wait, total = self.first, 0.0
        while total < self.patience:
            varied = wait * random.uniform(0.5, 1.0)
            yield varied
            total += varied
            wait = min(2 * wait, self.longest)
