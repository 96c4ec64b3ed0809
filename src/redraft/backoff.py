"""Patience with a server that does not answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long is waited before connecting again, in seconds: doubled from try to try, and varied.

    Attributes:
        first, longest: the shortest and the longest wait.
        patience: after so long without a connection the client gives up.
    """

    first: float = 0.2
    longest: float = 10.0
    patience: float = 300.0

    def waits(self) -> Iterator[float]:
        """The waits, until patience is at its end; variation keeps many clients from coming back all at once."""
        wait, total = self.first, 0.0
        while total < self.patience:
            varied = wait * random.uniform(0.5, 1.0)
            yield varied
            total += varied
            wait = min(2 * wait, self.longest)
